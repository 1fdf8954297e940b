DROP TABLE deposit_rates;
