-- A release of the shop's own application changes a table: the connector registers a new version with the next row.

ALTER TABLE shop.orders ADD COLUMN IF NOT EXISTS coupon text

INSERT INTO shop.orders (number, customer, total, coupon)
SELECT coalesce(max(number), 0) + 1, 2, 99.90, 'WELCOME5' FROM shop.orders
