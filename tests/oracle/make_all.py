"""Writes every case of tests/golden/ that these scripts own anew; other directories there are left alone."""

import make_8bit_losses
import make_adamw
import make_catalogue
import make_device_map
import make_early_stopping
import make_experts
import make_families
import make_forward
import make_generation
import make_lora
import make_optimizers
import make_qlora
import make_schedules

if __name__ == "__main__":
    for script in (make_forward, make_families, make_adamw, make_optimizers, make_lora, make_experts, make_generation,
                   make_qlora, make_8bit_losses, make_catalogue, make_device_map, make_schedules,
                   make_early_stopping):
        script.main()
