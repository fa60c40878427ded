-- The demo's shop, in a database of its own. Run by each demo: what is there already stays.
CREATE SCHEMA IF NOT EXISTS shop;
CREATE TABLE IF NOT EXISTS shop.customers (
    id SERIAL, first_name VARCHAR(255) NOT NULL, last_name VARCHAR(255) NOT NULL, email VARCHAR(255) NOT NULL,
    PRIMARY KEY(id)
);
CREATE TABLE IF NOT EXISTS shop.orders (
    number int PRIMARY KEY, customer int NOT NULL, placed timestamptz NOT NULL DEFAULT now(),
    total numeric(10, 2) NOT NULL, note text
);
-- Without a key: rows can be added, and PostgreSQL refuses to change or delete them while they are published.
CREATE TABLE IF NOT EXISTS shop.visits (page text NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS shop.stock (sku text PRIMARY KEY, pieces int NOT NULL, place text);
ALTER TABLE shop.stock REPLICA IDENTITY FULL;
INSERT INTO shop.customers (first_name, last_name, email)
SELECT * FROM (VALUES
    ('Sally', 'Thomas', 'sally.thomas@acme.com'),
    ('George', 'Bailey', 'gbailey@foobar.com'),
    ('Edward', 'Walker', 'ed@walker.com')
) AS first_customers WHERE NOT EXISTS (SELECT FROM shop.customers);
