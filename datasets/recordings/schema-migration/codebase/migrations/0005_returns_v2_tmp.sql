-- First attempt, see docs/incidents/2025-12-19-returns-v2-tmp.md
CREATE TABLE returns_v2_tmp (
  id INTEGER PRIMARY KEY,
  kiosk TEXT NOT NULL,
  started TEXT NOT NULL,
  total_cents INTEGER NOT NULL,
  voucher TEXT,
  status TEXT NOT NULL
);
