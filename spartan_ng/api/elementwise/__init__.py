"""Universal functions, and what is said of elements one by one; the five operators for functions of users."""
