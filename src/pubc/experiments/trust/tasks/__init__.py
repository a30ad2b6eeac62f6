"""Built-in tasks in numpy: who acts in them, with which fault, and what is recorded."""
