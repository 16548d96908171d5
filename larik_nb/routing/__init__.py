"""Who answers when: retries, the next model, cooldowns, settings and the budget, each a provider around a provider."""
