CREATE INDEX returns_member ON returns (member);
