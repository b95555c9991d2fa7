"""Whether a principal may do something: the matrix of roles, and what is known of rights."""
