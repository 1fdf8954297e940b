CREATE TABLE redemptions (
  id INTEGER PRIMARY KEY,
  voucher TEXT NOT NULL,
  till TEXT NOT NULL,
  paid REAL NOT NULL,
  at INTEGER NOT NULL
);
CREATE INDEX redemptions_voucher ON redemptions (voucher);
