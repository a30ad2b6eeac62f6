"""The stages of a cell: its dataset, its filter, its learner."""
