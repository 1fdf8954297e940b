CREATE TABLE germination_tests (
  id INTEGER PRIMARY KEY,
  lot INTEGER NOT NULL REFERENCES lots (id),
  tested_on TEXT NOT NULL,
  sown INTEGER NOT NULL CHECK (sown > 0),
  germinated INTEGER NOT NULL CHECK (germinated BETWEEN 0 AND sown)
);
CREATE INDEX germination_tests_lot ON germination_tests (lot);
