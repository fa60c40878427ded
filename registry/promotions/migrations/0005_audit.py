"""What was added to promotions, under audit."""

from django.db import migrations

from registry.audit.triggers import govern


class Migration(migrations.Migration):
    """What was added, under audit. Outlooks are worked out from the rest, and drafts are their author's own."""

    dependencies = [("promotions", "0004_carried_over"), ("audit", "0002_audit")]
    operations = [
        govern("promotions_reviewrule"),
        govern("promotions_freezewindow"),
        govern("promotions_breakglass"),
        govern("promotions_requestitem"),
        govern("promotions_thread"),
        govern("promotions_comment"),
        govern("promotions_applystep"),
    ]
