DROP INDEX returns_voucher;
DROP TABLE kiosk_events;
