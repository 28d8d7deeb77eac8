-- The power supply that a person named for a host; null while nobody has. Hosts with the same one fail together.

ALTER TABLE "host" ADD COLUMN "powerSupply" TEXT
    CONSTRAINT "host_power_supply" CHECK (length("powerSupply") BETWEEN 1 AND 63);
