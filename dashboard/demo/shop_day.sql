-- A day in the shop. Each demo adds one; it leaves nothing that the next one would stumble over.
-- A statement a paragraph.

INSERT INTO shop.customers (first_name, last_name, email) VALUES ('Anne', 'Kretchmar', 'annek@noanswer.org')

UPDATE shop.customers SET first_name = 'Anne Marie' WHERE first_name = 'Anne'

INSERT INTO shop.orders (number, customer, total, note)
SELECT last + step, 1 + step % 3, 10.50 * step, NULL
FROM generate_series(1, 20) AS step, (SELECT coalesce(max(number), 0) AS last FROM shop.orders) AS orders

-- A primary key that changes: three messages.
UPDATE shop.orders SET number = number + 1000 WHERE number = (SELECT max(number) FROM shop.orders)

DELETE FROM shop.orders WHERE number = (SELECT max(number) FROM shop.orders)

INSERT INTO shop.visits (page) VALUES ('/'), ('/basket'), ('/')

INSERT INTO shop.stock (sku, pieces) VALUES ('SKU-1', 12), ('SKU-2', 0), ('SKU-3', 7)

UPDATE shop.stock SET pieces = pieces - 1 WHERE sku = 'SKU-1'

DELETE FROM shop.stock WHERE sku = 'SKU-2'

TRUNCATE shop.stock

SELECT pg_logical_emit_message(true, 'shop', 'The shop closes.')

SELECT pg_logical_emit_message(false, 'shop', 'The lights are out.')

DELETE FROM shop.customers WHERE first_name = 'Anne Marie'
