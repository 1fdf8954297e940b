"""The embedded model: lexical answers, summaries and grades without a language model."""
