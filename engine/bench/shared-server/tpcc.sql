-- 30 statements of one transaction, in the proportions of TPC-C's new order: what is ordered is read, taken from stock and noted, in
-- the order of its numbers, so that no two orders wait for each other in a circle
\set item random(1, :scale * 100000 - 1000)
\set branch random(1, :scale)
BEGIN;
SELECT bbalance FROM pgbench_branches WHERE bid = :branch;
SELECT abalance FROM pgbench_accounts WHERE aid = :item;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 100;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 100;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 100, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 200;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 200;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 200, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 300;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 300;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 300, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 400;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 400;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 400, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 500;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 500;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 500, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 600;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 600;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 600, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 700;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 700;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 700, -1, CURRENT_TIMESTAMP);
SELECT abalance FROM pgbench_accounts WHERE aid = :item + 800;
UPDATE pgbench_accounts SET abalance = abalance - 1 WHERE aid = :item + 800;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, :branch, :item + 800, -1, CURRENT_TIMESTAMP);
COMMIT;
