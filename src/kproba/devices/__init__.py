"""Arrays of other libraries (PyTorch, CuPy, the array API), and what is computed on the devices where they lie.

``device.py`` moves arrays there and back; the other files hold the parts of a fit that are worth the way: features and
their sums, factors, leave-one-out. Each keeps the interface of its NumPy sibling and returns NumPy arrays.
"""
