"""On grids and signals: differences, filters, windows, padding, Fourier transforms, polynomials."""
