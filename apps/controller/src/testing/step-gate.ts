import type { TestDatabase } from '@floe/db/testing'
import { waitUntil } from '@floe/testkit'
import pg from 'pg'

/** A step that is about to be written as begun (`start`) or as done (`end`), by a controller that waits at the gate. */
export type Boundary = { step: string; when: 'start' | 'end'; id: number; pid: number }

const LOCKS = 7_453
const MOST_STEPS = 32

/**
 * Holds controllers at the boundaries between steps, each boundary of an operation once: the write that crosses it waits
 * in the control database, so that a test can kill whom it wants at exactly that moment.
 */
export class StepGate {
  readonly #db: TestDatabase
  readonly #holder: pg.Client

  private constructor(db: TestDatabase, holder: pg.Client) {
    this.#db = db
    this.#holder = holder
  }

  static async install(db: TestDatabase): Promise<StepGate> {
    await db.pool.query(`
      CREATE TABLE step_gate (armed boolean NOT NULL);
      INSERT INTO step_gate VALUES (false);
      CREATE TABLE step_gate_passed ("operationId" uuid, boundary int);
      CREATE FUNCTION step_gate() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      DECLARE
        boundary_now int := NEW.position * 2 + (NEW.state::text = 'succeeded')::int;
      BEGIN
        IF NEW.state::text IN ('running', 'succeeded') AND NEW.state IS DISTINCT FROM OLD.state
           AND (SELECT armed FROM step_gate)
           AND NOT EXISTS (SELECT FROM step_gate_passed p
                            WHERE p."operationId" = NEW."operationId" AND p.boundary = boundary_now) THEN
          PERFORM pg_advisory_xact_lock(${LOCKS}, boundary_now);
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER step_gate BEFORE UPDATE ON operation_step FOR EACH ROW EXECUTE FUNCTION step_gate()`)
    const holder = new pg.Client({ connectionString: db.connectionString })
    await holder.connect()
    await holder.query(
      `SELECT pg_advisory_lock(${LOCKS}, n) FROM generate_series(0, ${MOST_STEPS * 2 - 1}) AS n`,
    )
    return new StepGate(db, holder)
  }

  async arm(armed: boolean): Promise<void> {
    await this.#db.pool.query('UPDATE step_gate SET armed = $1', [armed])
  }

  /** The boundary a controller waits at; null while none does. */
  async waiting(operationId: string): Promise<Boundary | null> {
    const { rows } = await this.#db.pool.query<{ id: number; pid: number; step: string }>(
      `SELECT l.objid::int AS id, l.pid, s.name AS step
         FROM pg_locks l JOIN operation_step s ON s."operationId" = $1 AND s.position = l.objid::int / 2
        WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND l.locktype = 'advisory' AND l.classid = ${LOCKS} AND NOT l.granted`,
      [operationId],
    )
    const [row] = rows
    return row ? { step: row.step, when: row.id % 2 === 0 ? 'start' : 'end', id: row.id, pid: row.pid } : null
  }

  /** Lets an operation go on to this boundary and answers it; throws when the operation ends before. */
  async reach(operationId: string, when: Boundary['when'], step: string): Promise<Boundary> {
    for (;;) {
      const at = await waitUntil(
        'the operation comes to a boundary',
        async () => (await this.waiting(operationId)) ?? (await this.#ended(operationId)),
        60_000,
        15,
      )
      if (!('step' in at))
        throw new Error(`it came to no ${when} of ${step}: ${at.state} ${JSON.stringify(at.fault)}`)
      if (at.step === step && at.when === when) return at
      await this.open(operationId, at, false)
    }
  }

  async #ended(operationId: string): Promise<{ state: string; fault: unknown } | null> {
    const { rows } = await this.#db.pool.query<{ state: string; fault: unknown }>(
      'SELECT state, fault FROM operation WHERE id = $1 AND "endedAt" IS NOT NULL',
      [operationId],
    )
    return rows[0] ?? null
  }

  /** Lets an operation go on from a boundary, and holds nothing any more. */
  async release(operationId: string, at: Boundary): Promise<void> {
    await this.arm(false)
    await this.open(operationId, at, false)
  }

  /** From now on this boundary is crossed freely; whoever waits there goes on, unless `dead`: then its session ends. */
  async open(operationId: string, { id, pid }: Boundary, dead: boolean): Promise<void> {
    await this.#db.pool.query('INSERT INTO step_gate_passed VALUES ($1, $2)', [operationId, id])
    // a session is ended by a role that has its privileges: the controller's own
    if (dead) await this.#db.as.controller.pool.query('SELECT pg_terminate_backend($1, 5000)', [pid])
    else {
      await this.#holder.query('SELECT pg_advisory_unlock($1, $2)', [LOCKS, id])
      await waitUntil('the boundary is crossed', async () => {
        const { rows } = await this.#holder.query('SELECT pg_try_advisory_lock($1, $2) AS got', [LOCKS, id])
        return rows[0]?.got
      })
    }
  }

  async remove(): Promise<void> {
    await this.#holder.end()
  }
}
