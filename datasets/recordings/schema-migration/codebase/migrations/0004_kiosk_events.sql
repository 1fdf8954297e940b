CREATE TABLE kiosk_events (
  kiosk TEXT NOT NULL,
  at INTEGER NOT NULL,
  event TEXT NOT NULL,
  detail TEXT
);
CREATE INDEX returns_voucher ON returns (voucher);
