"""AWS Trainium and Inferentia: what neuron-monitor, neuron-ls and the driver tell."""
