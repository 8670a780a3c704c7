{{- /* A transfer in PL/pgSQL; sqlprocedure.go says what it takes and returns. */ -}}
CREATE OR REPLACE FUNCTION PROCEDURE_NAME(
	id {{.IntegerType}}, bics TEXT, bans TEXT, amounts TEXT, at_least {{.DecimalType}})
RETURNS TABLE (verdict {{.IntegerType}}, seen_balance {{.DecimalType}}, seen_version {{.IntegerType}}, seen_last {{.IntegerType}})
LANGUAGE plpgsql AS $body$
DECLARE
	bic_of TEXT[] := string_to_array(bics, ',');
	ban_of {{.IntegerType}}[] := string_to_array(bans, ',');
	amount_of {{.DecimalType}}[] := string_to_array(amounts, ',');
	balances {{.DecimalType}}[];
	versions {{.IntegerType}}[];
	lasts {{.IntegerType}}[];
	b {{.DecimalType}};
	v {{.IntegerType}};
	l {{.IntegerType}};
	payer {{.IntegerType}} := 1;
	sibling {{.IntegerType}} := 1;
	j {{.IntegerType}};
	r RECORD;
	rows_read {{.IntegerType}} := 0;
	kept {{.DecimalType}} := 0;
	answer {{.IntegerType}} := 0;
	leg_number {{.IntegerType}} := 0;
BEGIN
{{- if eq .Variant "atomic"}}
	{{- /* Nothing is read before it is written, unless the rule over two accounts asks for both,
	which are read in one statement. An overdraft is refused by the CHECK; an account that is
	not there is reported as what it is, a reference to nothing. */}}
	IF at_least > 0 THEN
		FOR i IN 1 .. array_length(bic_of, 1) LOOP
			IF amount_of[i] < 0 THEN
				payer := i;
			ELSIF amount_of[i] = 0 THEN
				sibling := i;
			END IF;
		END LOOP;
		FOR r IN SELECT a.bic, a.ban, a.balance, a.version, a.last_transfer FROM stroppy_account a
			WHERE (a.bic = bic_of[payer] AND a.ban = ban_of[payer])
			OR (a.bic = bic_of[sibling] AND a.ban = ban_of[sibling])
		LOOP
			j := CASE WHEN r.bic = bic_of[payer] AND r.ban = ban_of[payer] THEN payer ELSE sibling END;
			balances[j] := r.balance;
			versions[j] := r.version;
			lasts[j] := r.last_transfer;
			kept := kept + r.balance;
			rows_read := rows_read + 1;
		END LOOP;
		IF rows_read < 2 THEN
			answer := 2;
		ELSIF kept + amount_of[payer] < at_least THEN
			answer := 1;
		END IF;
	END IF;
	IF answer = 0 THEN
		FOR i IN 1 .. array_length(bic_of, 1) LOOP
			CONTINUE WHEN amount_of[i] = 0;
			UPDATE stroppy_account a SET balance = a.balance + amount_of[i], version = a.version + 1,
				previous_transfer = a.last_transfer, last_transfer = id
				WHERE a.bic = bic_of[i] AND a.ban = ban_of[i]
				RETURNING a.balance, a.version, a.previous_transfer INTO b, v, l;
			IF NOT FOUND THEN
				RAISE EXCEPTION 'no such account' USING ERRCODE = 'foreign_key_violation';
			END IF;
			INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
				VALUES (id, leg_number, bic_of[i], ban_of[i], amount_of[i], v);
			leg_number := leg_number + 1;
			IF versions[i] IS NULL THEN
				balances[i] := b - amount_of[i];
				versions[i] := v - 1;
				lasts[i] := l;
			END IF;
		END LOOP;
	END IF;
{{- else}}
	FOR i IN 1 .. array_length(bic_of, 1) LOOP
		SELECT a.balance, a.version, a.last_transfer INTO b, v, l FROM stroppy_account a
			WHERE a.bic = bic_of[i] AND a.ban = ban_of[i]{{if eq .Variant "locked"}}{{.ForUpdate}}{{end}};
		IF NOT FOUND THEN
			answer := 2;
			EXIT;
		END IF;
		balances[i] := b;
		versions[i] := v;
		lasts[i] := l;
		IF amount_of[i] <= 0 THEN
			kept := kept + b + amount_of[i];
			IF b + amount_of[i] < 0 THEN
				answer := 1;
			END IF;
		END IF;
	END LOOP;
	IF answer = 0 AND at_least > 0 AND kept < at_least THEN
		answer := 1;
	END IF;
	IF answer = 0 THEN
		FOR i IN 1 .. array_length(bic_of, 1) LOOP
			CONTINUE WHEN amount_of[i] = 0;
			UPDATE stroppy_account a SET balance = balances[i] + amount_of[i], version = versions[i] + 1,
				previous_transfer = lasts[i], last_transfer = id
				WHERE a.bic = bic_of[i] AND a.ban = ban_of[i];
			INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
				VALUES (id, leg_number, bic_of[i], ban_of[i], amount_of[i], versions[i] + 1);
			leg_number := leg_number + 1;
		END LOOP;
	END IF;
{{- end}}
	FOR i IN 1 .. array_length(bic_of, 1) LOOP
		verdict := answer;
		seen_balance := balances[i];
		seen_version := versions[i];
		seen_last := lasts[i];
		RETURN NEXT;
	END LOOP;
END
$body$
