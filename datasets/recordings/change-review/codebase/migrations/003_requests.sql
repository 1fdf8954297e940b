CREATE TABLE requests (
  id INTEGER PRIMARY KEY,
  accession TEXT NOT NULL REFERENCES accessions (id),
  requester TEXT NOT NULL,
  seeds INTEGER NOT NULL CHECK (seeds > 0),
  state TEXT NOT NULL CHECK (state IN ('open', 'approved', 'refused', 'shipped')),
  created_at INTEGER NOT NULL,
  approved_at INTEGER,
  shipped_at INTEGER
);
CREATE TABLE movements (
  id INTEGER PRIMARY KEY,
  lot INTEGER NOT NULL REFERENCES lots (id),
  mg INTEGER NOT NULL,
  reason TEXT NOT NULL,
  request INTEGER REFERENCES requests (id),
  moved_at INTEGER NOT NULL
);
