DROP TABLE movements;
DROP TABLE requests;
