"""Images of runs in a terminal: with kitty's graphics or sixels where it has them, else as half blocks."""
