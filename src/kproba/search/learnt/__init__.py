"""Learn the kernel: column weights and factors, widths, mixture and noise, by the gradient of exact leave-one-out.

``outer_folds`` repeats everything without each fold of the rows and thereby decides how many steps are taken;
``steps`` takes them; ``objective`` and ``pairs`` compute the loss of a sample and its gradient.
"""
