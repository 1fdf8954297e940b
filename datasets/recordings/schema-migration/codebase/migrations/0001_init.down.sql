DROP TABLE voucher_log;
DROP TABLE returns;
DROP TABLE kiosks;
