"""Problems that no preset was tuned on."""
