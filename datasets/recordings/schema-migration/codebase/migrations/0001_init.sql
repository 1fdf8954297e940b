CREATE TABLE kiosks (
  name TEXT PRIMARY KEY,
  site TEXT NOT NULL,
  open_all_night INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE returns (
  id INTEGER PRIMARY KEY,
  kiosk TEXT NOT NULL REFERENCES kiosks (name),
  started TEXT NOT NULL,
  items TEXT NOT NULL,
  total REAL NOT NULL,
  voucher TEXT,
  status TEXT NOT NULL CHECK (status IN ('open', 'printed', 'redeemed', 'void')),
  member TEXT
);
CREATE TABLE voucher_log (
  voucher TEXT NOT NULL,
  return_id INTEGER NOT NULL REFERENCES returns (id),
  printed_at INTEGER NOT NULL
);
