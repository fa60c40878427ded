"""The consequences of findings: suspected causes, and checks of promotions."""
