"""The families of questions: what each one varies, as data."""
