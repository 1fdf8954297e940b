CREATE TABLE accessions (
  id TEXT PRIMARY KEY,
  species TEXT NOT NULL,
  collection TEXT NOT NULL CHECK (collection IN ('base', 'active')),
  depositor TEXT NOT NULL
);
CREATE TABLE lots (
  id INTEGER PRIMARY KEY,
  accession TEXT NOT NULL REFERENCES accessions (id),
  freezer TEXT NOT NULL,
  packed_on TEXT NOT NULL,
  mg INTEGER NOT NULL CHECK (mg >= 0),
  tsw_mg INTEGER,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'quarantine', 'exhausted'))
);
CREATE INDEX lots_accession ON lots (accession);
