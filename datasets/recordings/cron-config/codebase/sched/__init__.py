"""Weekly timetable for prompted reports."""
