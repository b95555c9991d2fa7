"""The stores of the server: samples (`samples`), metadata (`metadata`), and what keeps the two consistent."""
