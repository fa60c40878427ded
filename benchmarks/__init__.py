"""What the product measures of itself: a module a subject, `timing` for all, `page` for what is written down."""
