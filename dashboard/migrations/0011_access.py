"""Every user has an account with a role; the audit trail is only ever added to."""

from django.db import migrations

ACCOUNTS = """
INSERT INTO dashboard_account (user_id, role)
SELECT id, CASE WHEN is_superuser THEN 'admin' WHEN is_staff THEN 'operator' ELSE 'member' END
FROM auth_user WHERE NOT EXISTS (SELECT 1 FROM dashboard_account WHERE user_id = auth_user.id)
"""
GUARD = """
CREATE FUNCTION dashboard_audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('tandem.audit_purge', true) = 'on' THEN
        IF TG_OP = 'DELETE' THEN
            RETURN OLD;
        END IF;
        IF TG_OP = 'TRUNCATE' THEN
            RETURN NULL;
        END IF;
    END IF;
    RAISE EXCEPTION 'The audit trail is only ever added to (% was refused).', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$$;
CREATE TRIGGER dashboard_audit_rows BEFORE UPDATE OR DELETE ON dashboard_auditentry
    FOR EACH ROW EXECUTE FUNCTION dashboard_audit_is_kept();
CREATE TRIGGER dashboard_audit_table BEFORE TRUNCATE ON dashboard_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION dashboard_audit_is_kept();
"""
UNGUARD = """
DROP TRIGGER dashboard_audit_rows ON dashboard_auditentry;
DROP TRIGGER dashboard_audit_table ON dashboard_auditentry;
DROP FUNCTION dashboard_audit_is_kept();
"""


class Migration(migrations.Migration):

    dependencies = [
        ("dashboard", "0010_change_jobs"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations: list = [
        migrations.RunSQL(ACCOUNTS, migrations.RunSQL.noop),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
