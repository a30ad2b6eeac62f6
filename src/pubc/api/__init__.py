"""The front door in Python: what `import pubc` offers beyond reading and writing data."""
