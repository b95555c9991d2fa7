"""AWS Trainium and Inferentia: read from neuron-monitor, neuron-ls and the driver."""
