"""The paper's recipe: bagged classifiers, made-up negatives, and a valley in a histogram."""
