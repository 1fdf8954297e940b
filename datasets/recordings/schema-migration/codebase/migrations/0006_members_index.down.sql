DROP INDEX returns_member;
