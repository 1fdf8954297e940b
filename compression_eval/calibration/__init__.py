"""Is the grader any good? Graded answers, what graders make of them, and how far they are off."""
