{{- /* A transfer in SQL/PSM, which does what the one in PL/pgSQL does. A SELECT without INTO is
a result of the procedure: each account's row is a result of its own, and a session joins
the results of one call. The language has no arrays, so the lists stay texts, each item of
which ends with a comma. "take key" takes the first account off (next_bic, next_ban,
next_amount) after "rewind"; what was seen of the accounts is such a list too, which
"take seen" reads (b, v, l; NULL where nothing was read). */ -}}
{{define "take key" -}}
SET next_bic = NULLIF(SUBSTRING(rest_bics FROM 1 FOR POSITION(',' IN rest_bics) - 1), ''); SET rest_bics = SUBSTRING(rest_bics FROM POSITION(',' IN rest_bics) + 1);
SET next_ban = NULLIF(SUBSTRING(rest_bans FROM 1 FOR POSITION(',' IN rest_bans) - 1), ''); SET rest_bans = SUBSTRING(rest_bans FROM POSITION(',' IN rest_bans) + 1);
SET next_amount = NULLIF(SUBSTRING(rest_amounts FROM 1 FOR POSITION(',' IN rest_amounts) - 1), ''); SET rest_amounts = SUBSTRING(rest_amounts FROM POSITION(',' IN rest_amounts) + 1);
{{- end -}}
{{define "take seen" -}}
SET b = NULLIF(SUBSTRING(rest_seen FROM 1 FOR POSITION(',' IN rest_seen) - 1), ''); SET rest_seen = SUBSTRING(rest_seen FROM POSITION(',' IN rest_seen) + 1);
SET v = NULLIF(SUBSTRING(rest_seen FROM 1 FOR POSITION(',' IN rest_seen) - 1), ''); SET rest_seen = SUBSTRING(rest_seen FROM POSITION(',' IN rest_seen) + 1);
SET l = NULLIF(SUBSTRING(rest_seen FROM 1 FOR POSITION(',' IN rest_seen) - 1), ''); SET rest_seen = SUBSTRING(rest_seen FROM POSITION(',' IN rest_seen) + 1);
{{- end -}}
{{define "rewind" -}}
SET rest_bics = CONCAT(bics, ','), rest_bans = CONCAT(bans, ','), rest_amounts = CONCAT(amounts, ','), rest_seen = seen;
{{- end -}}
CREATE PROCEDURE PROCEDURE_NAME(
	IN id {{.IntegerType}}, IN bics TEXT, IN bans TEXT, IN amounts TEXT, IN at_least {{.DecimalType}})
MODIFIES SQL DATA
BEGIN
	DECLARE rest_bics, rest_bans, rest_amounts, rest_seen TEXT;
	DECLARE seen TEXT DEFAULT '';
	DECLARE next_bic {{call .TextType 8}};
	DECLARE next_ban {{.IntegerType}};
	DECLARE next_amount, b {{.DecimalType}};
	DECLARE v, l {{.IntegerType}};
	DECLARE kept {{.DecimalType}} DEFAULT 0;
	DECLARE answer, leg_number {{.IntegerType}} DEFAULT 0;
{{- if eq .Variant "atomic"}}
	DECLARE payer_bic, sibling_bic {{call .TextType 8}};
	DECLARE payer_ban, sibling_ban, found {{.IntegerType}};
	DECLARE payer_amount, payer_b, sibling_b {{.DecimalType}};
	DECLARE payer_v, payer_l, sibling_v, sibling_l {{.IntegerType}};
	IF at_least > 0 THEN
		{{template "rewind"}}
		WHILE rest_bics <> '' DO
			{{template "take key"}}
			IF next_amount < 0 THEN
				SET payer_bic = next_bic, payer_ban = next_ban, payer_amount = next_amount;
			ELSEIF next_amount = 0 THEN
				SET sibling_bic = next_bic, sibling_ban = next_ban;
			END IF;
		END WHILE;
		SELECT COUNT(*), SUM(a.balance),
			MAX(CASE WHEN a.bic = payer_bic AND a.ban = payer_ban THEN a.balance END),
			MAX(CASE WHEN a.bic = payer_bic AND a.ban = payer_ban THEN a.version END),
			MAX(CASE WHEN a.bic = payer_bic AND a.ban = payer_ban THEN a.last_transfer END),
			MAX(CASE WHEN a.bic = sibling_bic AND a.ban = sibling_ban THEN a.balance END),
			MAX(CASE WHEN a.bic = sibling_bic AND a.ban = sibling_ban THEN a.version END),
			MAX(CASE WHEN a.bic = sibling_bic AND a.ban = sibling_ban THEN a.last_transfer END)
			INTO found, kept, payer_b, payer_v, payer_l, sibling_b, sibling_v, sibling_l
			FROM stroppy_account a
			WHERE (a.bic = payer_bic AND a.ban = payer_ban) OR (a.bic = sibling_bic AND a.ban = sibling_ban);
		IF found < 2 THEN
			SET answer = 2;
		ELSEIF kept + payer_amount < at_least THEN
			SET answer = 1;
		END IF;
	END IF;
	{{template "rewind"}}
	WHILE rest_bics <> '' DO
		{{template "take key"}}
		SET b = NULL, v = NULL, l = NULL;
		IF answer = 0 AND next_amount <> 0 THEN
			UPDATE stroppy_account SET balance = balance + next_amount, version = version + 1,
				previous_transfer = last_transfer, last_transfer = id
				WHERE bic = next_bic AND ban = next_ban;
			SELECT a.balance - next_amount, a.version - 1, a.previous_transfer INTO b, v, l FROM stroppy_account a
				WHERE a.bic = next_bic AND a.ban = next_ban;
			INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
				VALUES (id, leg_number, next_bic, next_ban, next_amount, v + 1);
			SET leg_number = leg_number + 1;
		END IF;
		IF at_least > 0 AND next_amount < 0 THEN
			SET b = payer_b, v = payer_v, l = payer_l;
		ELSEIF next_amount = 0 THEN
			SET b = sibling_b, v = sibling_v, l = sibling_l;
		END IF;
		SET seen = CONCAT(seen, COALESCE(b, ''), ',', COALESCE(v, ''), ',', COALESCE(l, ''), ',');
	END WHILE;
{{- else}}
	{{template "rewind"}}
	WHILE rest_bics <> '' AND answer < 2 DO
		{{template "take key"}}
		SET v = NULL;
		SELECT a.balance, a.version, a.last_transfer INTO b, v, l FROM stroppy_account a
			WHERE a.bic = next_bic AND a.ban = next_ban{{if eq .Variant "locked"}}{{.ForUpdate}}{{end}};
		IF v IS NULL THEN
			SET answer = 2;
		ELSE
			SET seen = CONCAT(seen, b, ',', v, ',', l, ',');
			IF next_amount <= 0 THEN
				SET kept = kept + b + next_amount;
				IF b + next_amount < 0 THEN
					SET answer = 1;
				END IF;
			END IF;
		END IF;
	END WHILE;
	IF answer = 0 AND at_least > 0 AND kept < at_least THEN
		SET answer = 1;
	END IF;
	IF answer = 0 THEN
		{{template "rewind"}}
		WHILE rest_bics <> '' DO
			{{template "take key"}}
			{{template "take seen"}}
			IF next_amount <> 0 THEN
				UPDATE stroppy_account SET balance = b + next_amount, version = v + 1,
					previous_transfer = l, last_transfer = id
					WHERE bic = next_bic AND ban = next_ban;
				INSERT INTO stroppy_ledger (transfer, leg, bic, ban, amount, version)
					VALUES (id, leg_number, next_bic, next_ban, next_amount, v + 1);
				SET leg_number = leg_number + 1;
			END IF;
		END WHILE;
	END IF;
{{- end}}
	{{template "rewind"}}
	WHILE rest_bics <> '' DO
		{{template "take key"}}
		SET b = NULL, v = NULL, l = NULL;
		IF rest_seen <> '' THEN
			{{template "take seen"}}
		END IF;
		SELECT answer, b, v, l;
	END WHILE;
END
