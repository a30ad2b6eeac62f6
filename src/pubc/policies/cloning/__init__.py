"""Learners that imitate: behaviour cloning and discriminator-weighted cloning."""
