"""What follows from findings: suspected causes, and checks of promotions."""
