"""How answers and states are scored: the rubric, the graders, mechanical facts, the scorers."""
