package bank

import (
	"fmt"
	"strings"
)

// The procedures do what those in PL/pgSQL do, see there. A SELECT without INTO is a
// result of the procedure: each account's row is a result of its own, and a session
// joins the results of one call. The language has no
// arrays, so the lists stay texts, of which TAKE_KEY takes the first account off
// (next_bic, next_ban, next_amount) after REWIND; what was seen of the accounts is
// such a list too, which TAKE_SEEN reads (b, v, l; NULL where nothing was read).
const (
	psmHead = `CREATE PROCEDURE IF NOT EXISTS PROCEDURE_NAME(
	IN id INTEGER_TYPE, IN bics TEXT, IN bans TEXT, IN amounts TEXT, IN at_least DECIMAL_TYPE)
MODIFIES SQL DATA
BEGIN
	DECLARE rest_bics, rest_bans, rest_amounts, rest_seen TEXT;
	DECLARE seen TEXT DEFAULT '';
	DECLARE next_bic BIC_TYPE;
	DECLARE next_ban INTEGER_TYPE;
	DECLARE next_amount, b DECIMAL_TYPE;
	DECLARE v, l INTEGER_TYPE;
	DECLARE kept DECIMAL_TYPE DEFAULT 0;
	DECLARE answer, leg_number INTEGER_TYPE DEFAULT 0;
`

	psmAtomic = `	DECLARE payer_bic, sibling_bic BIC_TYPE;
	DECLARE payer_ban, sibling_ban, found INTEGER_TYPE;
	DECLARE payer_amount, payer_b, sibling_b DECIMAL_TYPE;
	DECLARE payer_v, payer_l, sibling_v, sibling_l INTEGER_TYPE;
	IF at_least > 0 THEN
		REWIND
		WHILE rest_bics <> '' DO
			TAKE_KEY
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
	REWIND
	WHILE rest_bics <> '' DO
		TAKE_KEY
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
`

	psmReadWrite = `	REWIND
	WHILE rest_bics <> '' AND answer < 2 DO
		TAKE_KEY
		SET v = NULL;
		SELECT a.balance, a.version, a.last_transfer INTO b, v, l FROM stroppy_account a
			WHERE a.bic = next_bic AND a.ban = next_banLOCK;
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
		REWIND
		WHILE rest_bics <> '' DO
			TAKE_KEY
			TAKE_SEEN
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
`

	psmTail = `	REWIND
	WHILE rest_bics <> '' DO
		TAKE_KEY
		SET b = NULL, v = NULL, l = NULL;
		IF rest_seen <> '' THEN
			TAKE_SEEN
		END IF;
		SELECT answer, b, v, l;
	END WHILE;
END`
)

// take sets a variable to the first item of a list, each of which ends with a
// comma, and takes it off the list.
func take(variable, list string) string {
	return fmt.Sprintf("SET %s = NULLIF(SUBSTRING(%s FROM 1 FOR POSITION(',' IN %s) - 1), ''); ", variable, list, list) +
		fmt.Sprintf("SET %s = SUBSTRING(%s FROM POSITION(',' IN %s) + 1);", list, list, list)
}

// psmLists replaces what the procedures do with lists.
func psmLists() *strings.Replacer {
	return strings.NewReplacer(
		"TAKE_KEY", take("next_bic", "rest_bics")+" "+take("next_ban", "rest_bans")+" "+take("next_amount", "rest_amounts"),
		"TAKE_SEEN", take("b", "rest_seen")+" "+take("v", "rest_seen")+" "+take("l", "rest_seen"),
		"REWIND", "SET rest_bics = CONCAT(bics, ','), rest_bans = CONCAT(bans, ','), rest_amounts = CONCAT(amounts, ','), rest_seen = seen;",
	)
}
