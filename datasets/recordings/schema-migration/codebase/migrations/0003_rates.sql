CREATE TABLE deposit_rates (
  sku TEXT NOT NULL,
  valid_from TEXT NOT NULL,
  cents INTEGER NOT NULL,
  PRIMARY KEY (sku, valid_from)
);
