ALTER TABLE "notes" ADD COLUMN "stars" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "notes_by_author" ON "notes" USING btree ("author","written" DESC NULLS LAST);--> statement-breakpoint
ALTER TABLE "notes" ADD CONSTRAINT "stars" CHECK ("notes"."stars" <= 5);