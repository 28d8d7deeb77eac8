-- The function of the kernel that a checkpointer hung in during a stall (StallRecord).
-- AlterTable
ALTER TABLE "stall_record" ADD COLUMN "checkpointerHangsIn" TEXT;
