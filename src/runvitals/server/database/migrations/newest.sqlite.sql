-- revision 0041

CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE device (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	identity TEXT NOT NULL,
	uuid TEXT,
	pci_address TEXT,
	host TEXT NOT NULL,
	vendor TEXT,
	model TEXT,
	memory_bytes BIGINT,
	body TEXT NOT NULL,
	first_ms BIGINT NOT NULL,
	last_ms BIGINT NOT NULL,
	CONSTRAINT uq_device_identity UNIQUE (identity)
);

CREATE TABLE field (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	CONSTRAINT uq_field_name UNIQUE (name)
);

CREATE TABLE metric (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	"key" TEXT NOT NULL,
	CONSTRAINT uq_metric_key UNIQUE ("key")
);

CREATE TABLE schema (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	digest BLOB NOT NULL,
	metric_ids BLOB NOT NULL,
	CONSTRAINT uq_schema_digest UNIQUE (digest)
);

CREATE TABLE token (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	digest BLOB NOT NULL,
	created_ms BIGINT NOT NULL,
	last_used_ms BIGINT,
	revoked_ms BIGINT,
	CONSTRAINT uq_token_digest UNIQUE (digest)
);

CREATE TABLE process (
	run_id INTEGER NOT NULL,
	host TEXT NOT NULL,
	pid BIGINT NOT NULL,
	rank BIGINT,
	local_rank BIGINT,
	world_size BIGINT,
	ended_ms BIGINT,
	exit_code BIGINT,
	signal BIGINT,
	out_of_memory BOOLEAN,
	CONSTRAINT pk_process PRIMARY KEY (run_id, host, pid),
	CONSTRAINT fk_process_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE run_device (
	run_id INTEGER NOT NULL,
	host TEXT NOT NULL,
	device_id INTEGER NOT NULL,
	position BIGINT,
	used BOOLEAN,
	CONSTRAINT pk_run_device PRIMARY KEY (run_id, host, device_id),
	CONSTRAINT fk_run_device_device_id FOREIGN KEY(device_id) REFERENCES device (id),
	CONSTRAINT fk_run_device_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_run_device_device_id_run_id ON run_device (device_id, run_id);

CREATE TABLE run_field (
	run_id INTEGER NOT NULL,
	field_id INTEGER NOT NULL,
	kind SMALLINT NOT NULL,
	number DOUBLE NOT NULL,
	text TEXT NOT NULL,
	CONSTRAINT pk_run_field PRIMARY KEY (run_id, field_id),
	CONSTRAINT fk_run_field_field_id FOREIGN KEY(field_id) REFERENCES field (id),
	CONSTRAINT fk_run_field_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_run_field_field_id_kind_number_text_run_id ON run_field (field_id, kind, number, text, run_id);

CREATE TABLE run_tag (
	run_id INTEGER NOT NULL,
	tag TEXT NOT NULL,
	CONSTRAINT pk_run_tag PRIMARY KEY (run_id, tag),
	CONSTRAINT fk_run_tag_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_run_tag_tag_run_id ON run_tag (tag, run_id);

CREATE TABLE run_text (
	run_id INTEGER NOT NULL,
	text TEXT NOT NULL,
	CONSTRAINT pk_run_text PRIMARY KEY (run_id),
	CONSTRAINT fk_run_text_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE section (
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	host TEXT NOT NULL,
	body TEXT NOT NULL,
	set_ms BIGINT NOT NULL,
	older TEXT NOT NULL,
	CONSTRAINT pk_section PRIMARY KEY (run_id, name, host),
	CONSTRAINT fk_section_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE writer (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	lane_id INTEGER NOT NULL,
	role TEXT NOT NULL,
	host TEXT NOT NULL,
	pid BIGINT,
	rank BIGINT,
	interval_s DOUBLE,
	started_ms BIGINT NOT NULL,
	last_ms BIGINT NOT NULL,
	heard_ms BIGINT NOT NULL,
	end_state TEXT,
	exit_code BIGINT,
	signal BIGINT,
	out_of_memory BOOLEAN, api_key_id INTEGER,
	CONSTRAINT fk_writer_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT uq_writer_run_id_name UNIQUE (run_id, name)
);

CREATE INDEX ix_writer_lane_id ON writer (lane_id);

CREATE TABLE event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	writer_id INTEGER,
	seq BIGINT,
	time_ms BIGINT NOT NULL,
	level TEXT NOT NULL,
	name TEXT NOT NULL,
	body TEXT NOT NULL,
	CONSTRAINT fk_event_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_event_writer_id FOREIGN KEY(writer_id) REFERENCES writer (id) ON DELETE CASCADE,
	CONSTRAINT uq_event_writer_id_seq UNIQUE (writer_id, seq)
);

CREATE INDEX ix_event_run_id_time_ms_id ON event (run_id, time_ms, id);

CREATE TABLE writer_schema (
	writer_id INTEGER NOT NULL,
	schema_id INTEGER NOT NULL,
	CONSTRAINT pk_writer_schema PRIMARY KEY (writer_id, schema_id),
	CONSTRAINT fk_writer_schema_schema_id FOREIGN KEY(schema_id) REFERENCES schema (id),
	CONSTRAINT fk_writer_schema_writer_id FOREIGN KEY(writer_id) REFERENCES writer (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE VIRTUAL TABLE run_text_fts USING fts5(
        text, content='run_text', content_rowid='run_id', detail='none', tokenize='trigram case_sensitive 1'
    );

CREATE VIRTUAL TABLE run_text_terms USING fts5vocab('run_text_fts', 'instance');

CREATE TRIGGER run_text_added AFTER INSERT ON run_text BEGIN
        INSERT INTO run_text_fts(rowid, text) VALUES (new.run_id, new.text);
    END;

CREATE TRIGGER run_text_removed AFTER DELETE ON run_text BEGIN
        INSERT INTO run_text_fts(run_text_fts, rowid, text) VALUES ('delete', old.run_id, old.text);
    END;

CREATE TRIGGER run_text_changed AFTER UPDATE ON run_text BEGIN
        INSERT INTO run_text_fts(run_text_fts, rowid, text) VALUES ('delete', old.run_id, old.text);
        INSERT INTO run_text_fts(rowid, text) VALUES (new.run_id, new.text);
    END;

CREATE TABLE console (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	writer_id INTEGER NOT NULL,
	seq BIGINT NOT NULL,
	time_ms BIGINT NOT NULL,
	stream SMALLINT NOT NULL,
	text TEXT NOT NULL,
	size INTEGER NOT NULL,
	CONSTRAINT uq_console_writer_id_seq UNIQUE (writer_id, seq),
	CONSTRAINT fk_console_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_console_writer_id FOREIGN KEY(writer_id) REFERENCES writer (id) ON DELETE CASCADE
);

CREATE INDEX ix_console_run_id_time_ms_id ON console (run_id, time_ms, id);

CREATE TABLE console_kept (
	run_id INTEGER NOT NULL,
	bytes BIGINT NOT NULL,
	dropped_bytes BIGINT NOT NULL,
	CONSTRAINT pk_console_kept PRIMARY KEY (run_id),
	CONSTRAINT fk_console_kept_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE pairing (
	id TEXT NOT NULL,
	starts BIGINT NOT NULL,
	CONSTRAINT pk_pairing PRIMARY KEY (id)
);

CREATE TABLE access_generation (
	id INTEGER NOT NULL,
	number BIGINT NOT NULL,
	CONSTRAINT pk_access_generation PRIMARY KEY (id)
);

CREATE TABLE audit_event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	time_ms BIGINT NOT NULL,
	action TEXT NOT NULL,
	outcome TEXT NOT NULL,
	actor_kind TEXT NOT NULL,
	actor_id INTEGER,
	actor_name TEXT NOT NULL,
	via TEXT NOT NULL,
	key_public_id TEXT,
	ip TEXT,
	agent TEXT,
	entity_id INTEGER,
	entity TEXT,
	target TEXT,
	"before" TEXT,
	"after" TEXT
, project TEXT, run TEXT, request_id TEXT);

CREATE INDEX ix_audit_event_actor_kind_actor_id_time_ms ON audit_event (actor_kind, actor_id, time_ms);

CREATE INDEX ix_audit_event_entity_id_time_ms ON audit_event (entity_id, time_ms);

CREATE INDEX ix_audit_event_time_ms ON audit_event (time_ms);

CREATE TABLE entity (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	deleted_ms BIGINT,
	purged_ms BIGINT,
	CONSTRAINT ck_entity_kind CHECK (kind IN ('user', 'team')),
	CONSTRAINT uq_entity_name UNIQUE (name)
);

CREATE TABLE organisation_setting (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	set_ms BIGINT NOT NULL,
	CONSTRAINT pk_organisation_setting PRIMARY KEY (name)
);

CREATE TABLE user_account (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	entity_id INTEGER NOT NULL,
	display_name TEXT NOT NULL,
	profile TEXT NOT NULL,
	state TEXT NOT NULL,
	org_role TEXT NOT NULL,
	access TEXT NOT NULL,
	billing_role TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	created_via TEXT NOT NULL,
	last_seen_ms BIGINT,
	delete_after_ms BIGINT,
	deleted_ms BIGINT, default_entity_id INTEGER,
	CONSTRAINT ck_user_account_access CHECK (access IN ('full', 'viewer', 'none')),
	CONSTRAINT ck_user_account_billing_admin CHECK (billing_role <> 'admin' OR org_role = 'admin'),
	CONSTRAINT ck_user_account_billing_role CHECK (billing_role IN ('none', 'viewer', 'admin')),
	CONSTRAINT ck_user_account_org_role CHECK (org_role IN ('member', 'admin')),
	CONSTRAINT ck_user_account_state CHECK (state IN ('unverified', 'active', 'suspended', 'deleted')),
	CONSTRAINT fk_user_account_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id),
	CONSTRAINT uq_user_account_entity_id UNIQUE (entity_id)
);

CREATE TABLE email (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL,
	address TEXT NOT NULL,
	address_key TEXT NOT NULL,
	verified_ms BIGINT,
	is_primary BOOLEAN NOT NULL,
	created_ms BIGINT NOT NULL,
	last_sent_ms BIGINT,
	failing_since_ms BIGINT,
	CONSTRAINT fk_email_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_email_user_id_address_key UNIQUE (user_id, address_key)
);

CREATE UNIQUE INDEX uq_email_primary ON email (user_id) WHERE is_primary;

CREATE UNIQUE INDEX uq_email_verified ON email (address_key) WHERE verified_ms IS NOT NULL;

CREATE TABLE password (
	user_id INTEGER NOT NULL,
	hash TEXT NOT NULL,
	set_ms BIGINT NOT NULL,
	must_change BOOLEAN NOT NULL,
	CONSTRAINT pk_password PRIMARY KEY (user_id),
	CONSTRAINT fk_password_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE recovery_code (
	user_id INTEGER NOT NULL,
	digest BLOB NOT NULL,
	CONSTRAINT pk_recovery_code PRIMARY KEY (user_id, digest),
	CONSTRAINT fk_recovery_code_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE second_factor (
	user_id INTEGER NOT NULL,
	sealed_secret BLOB NOT NULL,
	created_ms BIGINT NOT NULL,
	confirmed_ms BIGINT,
	last_step BIGINT,
	CONSTRAINT pk_second_factor PRIMARY KEY (user_id),
	CONSTRAINT fk_second_factor_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE session (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL,
	digest BLOB NOT NULL,
	created_ms BIGINT NOT NULL,
	seen_ms BIGINT NOT NULL,
	idle_until_ms BIGINT NOT NULL,
	expires_ms BIGINT NOT NULL,
	sudo_until_ms BIGINT,
	method TEXT NOT NULL,
	ip TEXT NOT NULL,
	agent TEXT NOT NULL,
	revoked_ms BIGINT,
	CONSTRAINT fk_session_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_session_digest UNIQUE (digest)
);

CREATE INDEX ix_session_user_id ON session (user_id);

CREATE TABLE one_time_token (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	purpose TEXT NOT NULL,
	digest BLOB NOT NULL,
	user_id INTEGER,
	email_id INTEGER,
	created_ms BIGINT NOT NULL,
	expires_ms BIGINT NOT NULL,
	used_ms BIGINT,
	CONSTRAINT fk_one_time_token_email_id FOREIGN KEY(email_id) REFERENCES email (id) ON DELETE CASCADE,
	CONSTRAINT fk_one_time_token_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_one_time_token_digest UNIQUE (digest)
);

CREATE TABLE custom_role (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	name_key TEXT NOT NULL,
	description TEXT NOT NULL,
	base TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT ck_custom_role_base CHECK (base IN ('viewer', 'member')),
	CONSTRAINT uq_custom_role_name_key UNIQUE (name_key)
);

CREATE TABLE custom_role_action (
	role_id INTEGER NOT NULL,
	action TEXT NOT NULL,
	CONSTRAINT pk_custom_role_action PRIMARY KEY (role_id, action),
	CONSTRAINT fk_custom_role_action_role_id FOREIGN KEY(role_id) REFERENCES custom_role (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE team (
	entity_id INTEGER NOT NULL,
	display_name TEXT NOT NULL,
	description TEXT NOT NULL,
	created_by INTEGER,
	default_visibility TEXT NOT NULL,
	hidden BOOLEAN NOT NULL,
	members_invite BOOLEAN NOT NULL,
	public_projects BOOLEAN NOT NULL,
	public_links BOOLEAN NOT NULL,
	code_saving BOOLEAN NOT NULL, kind TEXT NOT NULL DEFAULT 'work', company TEXT NOT NULL DEFAULT '', profile TEXT NOT NULL DEFAULT '{}', join_domains TEXT NOT NULL DEFAULT '[]', join_by_domain TEXT NOT NULL DEFAULT 'ask', recommend_by_domain BOOLEAN NOT NULL DEFAULT false,
	CONSTRAINT pk_team PRIMARY KEY (entity_id),
	CONSTRAINT fk_team_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT fk_team_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id)
);

CREATE TABLE invitation (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER,
	address TEXT,
	address_key TEXT,
	role TEXT NOT NULL,
	custom_role_id INTEGER,
	org_role TEXT NOT NULL,
	invited_by INTEGER,
	digest BLOB NOT NULL,
	created_ms BIGINT NOT NULL,
	sent_ms BIGINT NOT NULL,
	sends INTEGER NOT NULL,
	expires_ms BIGINT NOT NULL,
	state TEXT NOT NULL,
	ended_ms BIGINT, user_id INTEGER CONSTRAINT fk_invitation_user_id REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT ck_invitation_state CHECK (state IN ('pending', 'accepted', 'declined', 'revoked', 'expired')),
	CONSTRAINT fk_invitation_custom_role_id FOREIGN KEY(custom_role_id) REFERENCES custom_role (id) ON DELETE SET NULL,
	CONSTRAINT fk_invitation_invited_by FOREIGN KEY(invited_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT fk_invitation_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT uq_invitation_digest UNIQUE (digest)
);

CREATE TABLE membership (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	user_id INTEGER NOT NULL,
	role TEXT NOT NULL,
	custom_role_id INTEGER,
	added_by INTEGER,
	created_ms BIGINT NOT NULL,
	expires_ms BIGINT,
	CONSTRAINT ck_membership_custom_role CHECK (custom_role_id IS NULL OR role <> 'admin'),
	CONSTRAINT ck_membership_role CHECK (role IN ('viewer', 'member', 'admin')),
	CONSTRAINT fk_membership_added_by FOREIGN KEY(added_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT fk_membership_custom_role_id FOREIGN KEY(custom_role_id) REFERENCES custom_role (id) ON DELETE SET NULL,
	CONSTRAINT fk_membership_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_membership_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_membership_team_id_user_id UNIQUE (team_id, user_id)
);

CREATE INDEX ix_membership_user_id ON membership (user_id);

CREATE UNIQUE INDEX uq_invitation_pending ON invitation (coalesce(team_id, 0), address_key) WHERE state = 'pending';

CREATE TABLE service_account (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	kind TEXT NOT NULL,
	team_id INTEGER,
	default_team_id INTEGER,
	reads_only BOOLEAN NOT NULL,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	disabled_ms BIGINT,
	deleted_ms BIGINT,
	CONSTRAINT ck_service_account_kind CHECK (kind IN ('builtin', 'legacy')),
	CONSTRAINT fk_service_account_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT fk_service_account_default_team_id FOREIGN KEY(default_team_id) REFERENCES team (entity_id) ON DELETE SET NULL,
	CONSTRAINT fk_service_account_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE
);

CREATE TABLE api_key (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	public_id TEXT NOT NULL,
	digest BLOB NOT NULL,
	name TEXT NOT NULL,
	user_id INTEGER,
	service_account_id INTEGER,
	scope TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	expires_ms BIGINT,
	last_used_ms BIGINT,
	revoked_ms BIGINT,
	rotated_from_id INTEGER,
	CONSTRAINT ck_api_key_scope CHECK (scope IN ('ingest', 'read', 'write', 'full')),
	CONSTRAINT ck_api_key_one_owner CHECK ((user_id IS NULL) <> (service_account_id IS NULL)),
	CONSTRAINT fk_api_key_rotated_from_id FOREIGN KEY(rotated_from_id) REFERENCES api_key (id) ON DELETE SET NULL,
	CONSTRAINT fk_api_key_service_account_id FOREIGN KEY(service_account_id) REFERENCES service_account (id) ON DELETE CASCADE,
	CONSTRAINT fk_api_key_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_api_key_public_id UNIQUE (public_id)
);

CREATE INDEX ix_api_key_service_account_id ON api_key (service_account_id);

CREATE INDEX ix_api_key_user_id ON api_key (user_id);

CREATE TABLE project_member (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	project_id INTEGER NOT NULL,
	user_id INTEGER,
	service_account_id INTEGER,
	role TEXT,
	custom_role_id INTEGER,
	created_ms BIGINT NOT NULL,
	CONSTRAINT ck_project_member_one_member CHECK ((user_id IS NULL) <> (service_account_id IS NULL)),
	CONSTRAINT fk_project_member_custom_role_id FOREIGN KEY(custom_role_id) REFERENCES custom_role (id) ON DELETE SET NULL,
	CONSTRAINT fk_project_member_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_project_member_service_account_id FOREIGN KEY(service_account_id) REFERENCES service_account (id) ON DELETE CASCADE,
	CONSTRAINT fk_project_member_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_project_member_project_id_service_account_id UNIQUE (project_id, service_account_id),
	CONSTRAINT uq_project_member_project_id_user_id UNIQUE (project_id, user_id)
);

CREATE INDEX ix_project_member_user_id ON project_member (user_id);

CREATE TABLE api_key_entity (
	key_id INTEGER NOT NULL,
	entity_id INTEGER NOT NULL,
	CONSTRAINT pk_api_key_entity PRIMARY KEY (key_id, entity_id),
	CONSTRAINT fk_api_key_entity_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id) ON DELETE CASCADE,
	CONSTRAINT fk_api_key_entity_key_id FOREIGN KEY(key_id) REFERENCES api_key (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE UNIQUE INDEX uq_service_account_name ON service_account (coalesce(team_id, 0), name) WHERE deleted_ms IS NULL;

CREATE TABLE guest_link (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	digest BLOB NOT NULL,
	project_id INTEGER,
	run_id INTEGER,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	expires_ms BIGINT,
	revoked_ms BIGINT,
	CONSTRAINT uq_guest_link_digest UNIQUE (digest),
	CONSTRAINT ck_guest_link_one_target CHECK ((project_id IS NULL) <> (run_id IS NULL)),
	CONSTRAINT fk_guest_link_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_guest_link_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_guest_link_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL
);

CREATE INDEX ix_guest_link_project_id ON guest_link (project_id);

CREATE INDEX ix_guest_link_run_id ON guest_link (run_id);

CREATE TABLE run_tombstone (
	entity_id INTEGER NOT NULL,
	uid_digest BLOB NOT NULL,
	purged_ms BIGINT NOT NULL,
	CONSTRAINT pk_run_tombstone PRIMARY KEY (entity_id, uid_digest),
	CONSTRAINT fk_run_tombstone_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id)
)
 WITHOUT ROWID;

CREATE TABLE "project" (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	entity_id INTEGER,
	owner_id INTEGER,
	visibility TEXT, description TEXT NOT NULL DEFAULT '', overview TEXT NOT NULL DEFAULT '', deleted_ms BIGINT,
	CONSTRAINT fk_project_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id),
	CONSTRAINT fk_project_owner_id FOREIGN KEY(owner_id) REFERENCES user_account (id)
);

CREATE TABLE "run" (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	uid TEXT NOT NULL,
	project_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	group_name TEXT NOT NULL,
	job_type TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	started_ms BIGINT NOT NULL,
	last_ms BIGINT NOT NULL,
	alive_until_ms BIGINT,
	settled_state TEXT NOT NULL,
	exit_code BIGINT,
	signal BIGINT,
	out_of_memory BOOLEAN,
	stop_requested_ms BIGINT,
	deleted_ms BIGINT,
	author_id INTEGER,
	service_account_id INTEGER,
	entity_id INTEGER,
	CONSTRAINT fk_run_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id),
	CONSTRAINT fk_run_project_id FOREIGN KEY(project_id) REFERENCES project (id),
	CONSTRAINT fk_run_author_id FOREIGN KEY(author_id) REFERENCES user_account (id),
	CONSTRAINT fk_run_service_account_id FOREIGN KEY(service_account_id) REFERENCES service_account (id) ON DELETE SET NULL
);

CREATE INDEX ix_run_name ON run (name, id, deleted_ms);

CREATE INDEX ix_run_project ON run (project_id, started_ms, id, deleted_ms);

CREATE INDEX ix_run_started ON run (started_ms, id, deleted_ms);

CREATE INDEX ix_run_state ON run (alive_until_ms, settled_state, project_id, deleted_ms);

CREATE UNIQUE INDEX uq_project_name_entity_id ON project (name, coalesce(entity_id, 0));

CREATE UNIQUE INDEX uq_run_uid_entity_id ON run (uid, coalesce(entity_id, 0));

CREATE INDEX ix_run_author ON run (author_id, started_ms, id, deleted_ms);

CREATE TABLE outgoing_mail (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	message_id TEXT NOT NULL,
	kind TEXT NOT NULL,
	address TEXT NOT NULL,
	address_key TEXT NOT NULL,
	security BOOLEAN NOT NULL,
	sealed BLOB,
	created_ms BIGINT NOT NULL,
	next_ms BIGINT NOT NULL,
	give_up_ms BIGINT NOT NULL,
	tries INTEGER NOT NULL,
	state TEXT NOT NULL,
	ended_ms BIGINT,
	error TEXT, once_key TEXT,
	CONSTRAINT ck_outgoing_mail_state CHECK (state IN ('waiting', 'sent', 'failed', 'discarded'))
);

CREATE INDEX ix_outgoing_mail_state ON outgoing_mail (state, next_ms);

CREATE INDEX ix_outgoing_mail_address_key ON outgoing_mail (address_key, ended_ms);

CREATE TABLE picture (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	digest TEXT NOT NULL,
	large BLOB NOT NULL,
	small BLOB NOT NULL,
	CONSTRAINT uq_picture_digest UNIQUE (digest)
);

CREATE TABLE entity_picture (
	entity_id INTEGER NOT NULL,
	picture_id INTEGER NOT NULL,
	CONSTRAINT pk_entity_picture PRIMARY KEY (entity_id),
	CONSTRAINT fk_entity_picture_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id) ON DELETE CASCADE,
	CONSTRAINT fk_entity_picture_picture_id FOREIGN KEY(picture_id) REFERENCES picture (id)
);

CREATE INDEX ix_entity_picture_picture_id ON entity_picture (picture_id);

CREATE TABLE device_login (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	digest BLOB NOT NULL,
	code TEXT NOT NULL,
	name TEXT NOT NULL,
	ip TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	expires_ms BIGINT NOT NULL,
	user_id INTEGER,
	scope TEXT NOT NULL,
	denied BOOLEAN NOT NULL,
	CONSTRAINT uq_device_login_digest UNIQUE (digest),
	CONSTRAINT uq_device_login_code UNIQUE (code),
	CONSTRAINT fk_device_login_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE login (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL,
	provider TEXT NOT NULL,
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	label TEXT NOT NULL,
	address_seen TEXT,
	created_ms BIGINT NOT NULL,
	last_used_ms BIGINT,
	CONSTRAINT uq_login_issuer UNIQUE (issuer, subject),
	CONSTRAINT fk_login_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE INDEX ix_login_user_id ON login (user_id);

CREATE TABLE sign_in_attempt (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	digest BLOB NOT NULL,
	browser_digest BLOB NOT NULL,
	provider TEXT NOT NULL,
	user_id INTEGER,
	sealed BLOB NOT NULL,
	created_ms BIGINT NOT NULL,
	expires_ms BIGINT NOT NULL,
	CONSTRAINT uq_sign_in_attempt_digest UNIQUE (digest),
	CONSTRAINT fk_sign_in_attempt_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE login_offer (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	digest BLOB NOT NULL,
	user_id INTEGER NOT NULL,
	provider TEXT NOT NULL,
	issuer TEXT NOT NULL,
	subject TEXT NOT NULL,
	label TEXT NOT NULL,
	address_seen TEXT,
	expires_ms BIGINT NOT NULL,
	CONSTRAINT uq_login_offer_digest UNIQUE (digest),
	CONSTRAINT fk_login_offer_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE group_membership (
	membership_id INTEGER NOT NULL,
	provider TEXT NOT NULL,
	CONSTRAINT pk_group_membership PRIMARY KEY (membership_id),
	CONSTRAINT fk_group_membership_membership_id FOREIGN KEY(membership_id) REFERENCES membership (id) ON DELETE CASCADE
);

CREATE TABLE jwt_issuer (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	url TEXT NOT NULL,
	audience TEXT NOT NULL,
	enabled BOOLEAN NOT NULL,
	created_ms BIGINT NOT NULL, pasted_keys TEXT,
	CONSTRAINT uq_jwt_issuer_url UNIQUE (url)
);

CREATE TABLE external_identity (
	service_account_id INTEGER NOT NULL,
	issuer_id INTEGER NOT NULL,
	subject TEXT NOT NULL,
	CONSTRAINT pk_external_identity PRIMARY KEY (service_account_id),
	CONSTRAINT uq_external_identity_issuer_id UNIQUE (issuer_id, subject),
	CONSTRAINT fk_external_identity_service_account_id FOREIGN KEY(service_account_id) REFERENCES service_account (id) ON DELETE CASCADE,
	CONSTRAINT fk_external_identity_issuer_id FOREIGN KEY(issuer_id) REFERENCES jwt_issuer (id)
);

CREATE INDEX ix_invitation_user_id ON invitation (user_id);

CREATE UNIQUE INDEX uq_invitation_pending_user ON invitation (coalesce(team_id, 0), user_id) WHERE state = 'pending';

CREATE TABLE project_star (
	project_id INTEGER NOT NULL,
	user_id INTEGER NOT NULL,
	CONSTRAINT pk_project_star PRIMARY KEY (project_id, user_id),
	CONSTRAINT fk_project_star_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_project_star_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE scim_resource (
	entity_id INTEGER NOT NULL,
	user_name TEXT,
	user_name_key TEXT,
	external_id TEXT,
	CONSTRAINT pk_scim_resource PRIMARY KEY (entity_id),
	CONSTRAINT uq_scim_resource_user_name_key UNIQUE (user_name_key),
	CONSTRAINT fk_scim_resource_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id) ON DELETE CASCADE
);

CREATE TABLE project_redirect (
	entity_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	project_id INTEGER NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_project_redirect PRIMARY KEY (entity_id, name),
	CONSTRAINT fk_project_redirect_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id) ON DELETE CASCADE,
	CONSTRAINT fk_project_redirect_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_project_redirect_project_id ON project_redirect (project_id);

CREATE TABLE group_administrator (
	user_id INTEGER NOT NULL,
	provider TEXT NOT NULL,
	CONSTRAINT pk_group_administrator PRIMARY KEY (user_id),
	CONSTRAINT fk_group_administrator_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE media (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	writer_id INTEGER NOT NULL,
	seq BIGINT NOT NULL,
	time_ms BIGINT NOT NULL,
	step DOUBLE,
	"key" TEXT NOT NULL,
	kind TEXT NOT NULL,
	body TEXT NOT NULL,
	CONSTRAINT uq_media_writer_id_seq UNIQUE (writer_id, seq),
	CONSTRAINT fk_media_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_media_writer_id FOREIGN KEY(writer_id) REFERENCES writer (id) ON DELETE CASCADE
);

CREATE INDEX ix_media_run_id_key_step_time_ms_id ON media (run_id, "key", step, time_ms, id);

CREATE TABLE stored_file (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	sha256 TEXT NOT NULL,
	bytes BIGINT NOT NULL,
	media_type TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT uq_stored_file_sha256 UNIQUE (sha256)
);

CREATE TABLE run_file (
	run_id INTEGER NOT NULL,
	file_id INTEGER NOT NULL,
	CONSTRAINT pk_run_file PRIMARY KEY (run_id, file_id),
	CONSTRAINT fk_run_file_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_run_file_file_id FOREIGN KEY(file_id) REFERENCES stored_file (id)
)
 WITHOUT ROWID;

CREATE INDEX ix_run_file_file_id ON run_file (file_id);

CREATE UNIQUE INDEX ix_outgoing_mail_once_key ON outgoing_mail (once_key);

CREATE TABLE team_join_request (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	user_id INTEGER NOT NULL,
	message TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	state TEXT NOT NULL,
	ended_ms BIGINT,
	ended_by INTEGER,
	CONSTRAINT fk_team_join_request_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_team_join_request_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT fk_team_join_request_ended_by FOREIGN KEY(ended_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT state CHECK (state IN ('pending', 'approved', 'rejected', 'withdrawn'))
);

CREATE INDEX ix_team_join_request_user_id ON team_join_request (user_id);

CREATE UNIQUE INDEX uq_team_join_request_pending ON team_join_request (team_id, user_id) WHERE state = 'pending';

CREATE TABLE passkey_owner (
	user_id INTEGER NOT NULL,
	handle BLOB NOT NULL,
	after_password BOOLEAN NOT NULL,
	CONSTRAINT pk_passkey_owner PRIMARY KEY (user_id),
	CONSTRAINT uq_passkey_owner_handle UNIQUE (handle),
	CONSTRAINT fk_passkey_owner_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE passkey (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL,
	credential_id BLOB NOT NULL,
	public_key BLOB NOT NULL,
	sign_count BIGINT NOT NULL,
	transports TEXT NOT NULL,
	backed_up BOOLEAN NOT NULL,
	name TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	last_used_ms BIGINT,
	CONSTRAINT uq_passkey_credential_id UNIQUE (credential_id),
	CONSTRAINT fk_passkey_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE INDEX ix_passkey_user_id ON passkey (user_id);

CREATE TABLE used_challenge (
	digest BLOB NOT NULL,
	expires_ms BIGINT NOT NULL,
	CONSTRAINT pk_used_challenge PRIMARY KEY (digest)
);

CREATE TABLE login_failure (
	digest BLOB NOT NULL,
	count INTEGER NOT NULL,
	last_ms BIGINT NOT NULL,
	CONSTRAINT pk_login_failure PRIMARY KEY (digest)
);

CREATE TABLE idempotent_request (
	digest BLOB NOT NULL,
	principal TEXT NOT NULL,
	request BLOB NOT NULL,
	attempt BLOB NOT NULL,
	started_ms BIGINT NOT NULL,
	status INTEGER,
	answer BLOB,
	CONSTRAINT pk_idempotent_request PRIMARY KEY (digest)
);

CREATE INDEX ix_idempotent_request_principal_started_ms ON idempotent_request (principal, started_ms);

CREATE INDEX ix_idempotent_request_started_ms ON idempotent_request (started_ms);

CREATE TABLE team_secret (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	sealed BLOB NOT NULL,
	changed_by INTEGER,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT uq_team_secret_team_id_name UNIQUE (team_id, name),
	CONSTRAINT fk_team_secret_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_team_secret_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT fk_team_secret_changed_by FOREIGN KEY(changed_by) REFERENCES user_account (id) ON DELETE SET NULL
);

CREATE TABLE team_webhook (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	url TEXT NOT NULL,
	access_secret_id INTEGER,
	signing_secret_id INTEGER,
	payload TEXT,
	enabled BOOLEAN NOT NULL,
	CONSTRAINT uq_team_webhook_team_id_name UNIQUE (team_id, name),
	CONSTRAINT fk_team_webhook_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_team_webhook_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT fk_team_webhook_access_secret_id FOREIGN KEY(access_secret_id) REFERENCES team_secret (id) ON DELETE SET NULL,
	CONSTRAINT fk_team_webhook_signing_secret_id FOREIGN KEY(signing_secret_id) REFERENCES team_secret (id) ON DELETE SET NULL
);

CREATE INDEX ix_team_webhook_access_secret_id ON team_webhook (access_secret_id);

CREATE INDEX ix_team_webhook_signing_secret_id ON team_webhook (signing_secret_id);

CREATE TABLE slack_destination (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	channel TEXT NOT NULL,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	sealed BLOB NOT NULL,
	shown TEXT NOT NULL, disabled_ms BIGINT,
	CONSTRAINT uq_slack_destination_team_id_channel UNIQUE (team_id, channel),
	CONSTRAINT fk_slack_destination_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_slack_destination_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL
);

CREATE TABLE audit_webhook (
	id INTEGER NOT NULL,
	url TEXT NOT NULL,
	sealed BLOB NOT NULL,
	created_ms BIGINT NOT NULL,
	sent_id BIGINT NOT NULL,
	gaps TEXT NOT NULL,
	claimed_by TEXT,
	claimed_until_ms BIGINT,
	delivered_ms BIGINT,
	problem TEXT,
	CONSTRAINT pk_audit_webhook PRIMARY KEY (id)
);

CREATE TABLE deletion_notice (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	address TEXT NOT NULL,
	deleted_ms BIGINT NOT NULL
);

CREATE TABLE run_note (
	run_id INTEGER NOT NULL,
	text TEXT NOT NULL,
	CONSTRAINT pk_run_note PRIMARY KEY (run_id),
	CONSTRAINT fk_run_note_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE run_statistics (
	run_id INTEGER NOT NULL,
	as_of_ms BIGINT NOT NULL,
	version SMALLINT NOT NULL,
	CONSTRAINT pk_run_statistics PRIMARY KEY (run_id),
	CONSTRAINT fk_run_statistics_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE INDEX ix_writer_host_run_id ON writer (host, run_id);

CREATE TABLE saved_view (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	project_id INTEGER NOT NULL,
	user_id INTEGER,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	data TEXT NOT NULL,
	revision INTEGER NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT fk_saved_view_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_saved_view_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE INDEX ix_saved_view_project_id_kind ON saved_view (project_id, kind);

CREATE INDEX ix_saved_view_user_id ON saved_view (user_id);

CREATE TABLE routing_rules (
	project_id INTEGER NOT NULL,
	data TEXT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT pk_routing_rules PRIMARY KEY (project_id),
	CONSTRAINT fk_routing_rules_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
);

CREATE TABLE artifact_collection (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	project_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	type TEXT NOT NULL,
	description TEXT NOT NULL,
	tags TEXT NOT NULL,
	next_version INTEGER NOT NULL,
	created_ms BIGINT NOT NULL,
	updated_ms BIGINT NOT NULL,
	CONSTRAINT uq_artifact_collection_project_id_name UNIQUE (project_id, name),
	CONSTRAINT ck_artifact_collection_kind CHECK (kind IN ('sequence', 'portfolio')),
	CONSTRAINT fk_artifact_collection_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
);

CREATE TABLE artifact_version (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	collection_id INTEGER NOT NULL,
	version INTEGER,
	state TEXT NOT NULL,
	digest TEXT NOT NULL,
	manifest_kind TEXT NOT NULL,
	base_id INTEGER,
	description TEXT NOT NULL,
	metadata TEXT NOT NULL,
	tags TEXT NOT NULL,
	aliases TEXT NOT NULL,
	ttl_s BIGINT,
	history_step BIGINT,
	run_id INTEGER,
	author_id INTEGER,
	client_id TEXT,
	distributed_id TEXT,
	bytes BIGINT NOT NULL,
	files INTEGER NOT NULL,
	created_ms BIGINT NOT NULL,
	updated_ms BIGINT NOT NULL,
	CONSTRAINT ck_artifact_version_state CHECK (state IN ('draft', 'committed', 'deleted')),
	CONSTRAINT ck_artifact_version_manifest_kind CHECK (manifest_kind IN ('full', 'incremental', 'patch')),
	CONSTRAINT fk_artifact_version_collection_id FOREIGN KEY(collection_id) REFERENCES artifact_collection (id) ON DELETE CASCADE,
	CONSTRAINT fk_artifact_version_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE SET NULL,
	CONSTRAINT fk_artifact_version_author_id FOREIGN KEY(author_id) REFERENCES user_account (id) ON DELETE SET NULL
);

CREATE INDEX ix_artifact_version_collection_id_digest ON artifact_version (collection_id, digest);

CREATE INDEX ix_artifact_version_state_created_ms ON artifact_version (state, created_ms);

CREATE INDEX ix_artifact_version_run_id ON artifact_version (run_id);

CREATE INDEX ix_artifact_version_client_id ON artifact_version (client_id);

CREATE TABLE artifact_membership (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	collection_id INTEGER NOT NULL,
	version_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT uq_artifact_membership_collection_id_number UNIQUE (collection_id, number),
	CONSTRAINT uq_artifact_membership_version_id_collection_id UNIQUE (version_id, collection_id),
	CONSTRAINT fk_artifact_membership_collection_id FOREIGN KEY(collection_id) REFERENCES artifact_collection (id) ON DELETE CASCADE,
	CONSTRAINT fk_artifact_membership_version_id FOREIGN KEY(version_id) REFERENCES artifact_version (id) ON DELETE CASCADE
);

CREATE TABLE artifact_alias (
	collection_id INTEGER NOT NULL,
	alias TEXT NOT NULL,
	membership_id INTEGER NOT NULL,
	CONSTRAINT pk_artifact_alias PRIMARY KEY (collection_id, alias),
	CONSTRAINT fk_artifact_alias_collection_id FOREIGN KEY(collection_id) REFERENCES artifact_collection (id) ON DELETE CASCADE,
	CONSTRAINT fk_artifact_alias_membership_id FOREIGN KEY(membership_id) REFERENCES artifact_membership (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_artifact_alias_membership_id ON artifact_alias (membership_id);

CREATE TABLE artifact_entry (
	version_id INTEGER NOT NULL,
	path TEXT NOT NULL,
	digest TEXT NOT NULL,
	bytes BIGINT,
	reference TEXT,
	file_id INTEGER,
	birth_id INTEGER,
	extra TEXT,
	CONSTRAINT pk_artifact_entry PRIMARY KEY (version_id, path),
	CONSTRAINT fk_artifact_entry_version_id FOREIGN KEY(version_id) REFERENCES artifact_version (id) ON DELETE CASCADE,
	CONSTRAINT fk_artifact_entry_file_id FOREIGN KEY(file_id) REFERENCES stored_file (id)
)
 WITHOUT ROWID;

CREATE INDEX ix_artifact_entry_file_id ON artifact_entry (file_id);

CREATE TABLE artifact_content (
	project_id INTEGER NOT NULL,
	digest TEXT NOT NULL,
	file_id INTEGER NOT NULL,
	used_ms BIGINT NOT NULL,
	CONSTRAINT pk_artifact_content PRIMARY KEY (project_id, digest),
	CONSTRAINT fk_artifact_content_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_artifact_content_file_id FOREIGN KEY(file_id) REFERENCES stored_file (id)
)
 WITHOUT ROWID;

CREATE INDEX ix_artifact_content_file_id ON artifact_content (file_id);

CREATE TABLE artifact_use (
	version_id INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	used_as TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT pk_artifact_use PRIMARY KEY (version_id, run_id),
	CONSTRAINT fk_artifact_use_version_id FOREIGN KEY(version_id) REFERENCES artifact_version (id) ON DELETE CASCADE,
	CONSTRAINT fk_artifact_use_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_artifact_use_run_id ON artifact_use (run_id);

CREATE TABLE wandb_client (
	run_id INTEGER NOT NULL,
	client TEXT NOT NULL,
	host TEXT NOT NULL,
	started_ms BIGINT NOT NULL,
	history_lines BIGINT NOT NULL,
	event_lines BIGINT NOT NULL,
	console_lines BIGINT NOT NULL,
	row_ms BIGINT NOT NULL,
	ended BOOLEAN NOT NULL,
	CONSTRAINT pk_wandb_client PRIMARY KEY (run_id, client),
	CONSTRAINT fk_wandb_client_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE mlflow_experiment (
	project_id INTEGER NOT NULL,
	name TEXT,
	artifact_location TEXT,
	changed_ms BIGINT NOT NULL,
	deleted_ms BIGINT,
	tags TEXT NOT NULL,
	CONSTRAINT pk_mlflow_experiment PRIMARY KEY (project_id),
	CONSTRAINT fk_mlflow_experiment_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
);

CREATE INDEX ix_mlflow_experiment_name ON mlflow_experiment (name);

CREATE TABLE registered_model (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	entity_id INTEGER,
	name TEXT NOT NULL,
	description TEXT,
	tags TEXT NOT NULL,
	aliases TEXT NOT NULL,
	last_version INTEGER NOT NULL,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT fk_registered_model_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX uq_registered_model_name_entity_id ON registered_model (name, coalesce(entity_id, 0));

CREATE INDEX ix_registered_model_entity_id ON registered_model (entity_id);

CREATE TABLE model_version (
	model_id INTEGER NOT NULL,
	version INTEGER NOT NULL,
	description TEXT,
	stage TEXT NOT NULL,
	source TEXT NOT NULL,
	location TEXT NOT NULL,
	run_uid TEXT,
	run_link TEXT,
	logged_model TEXT,
	tags TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT pk_model_version PRIMARY KEY (model_id, version),
	CONSTRAINT fk_model_version_model_id FOREIGN KEY(model_id) REFERENCES registered_model (id) ON DELETE CASCADE
);

CREATE TABLE logged_model (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	uid TEXT NOT NULL,
	project_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	type TEXT,
	status TEXT NOT NULL,
	run_uid TEXT,
	params TEXT NOT NULL,
	tags TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT uq_logged_model_uid UNIQUE (uid),
	CONSTRAINT fk_logged_model_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE
);

CREATE INDEX ix_logged_model_project_id ON logged_model (project_id);

CREATE TABLE run_lineage (
	run_id INTEGER NOT NULL,
	datasets TEXT NOT NULL,
	models TEXT NOT NULL,
	outputs TEXT NOT NULL,
	CONSTRAINT pk_run_lineage PRIMARY KEY (run_id),
	CONSTRAINT fk_run_lineage_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE mlflow_file (
	project_id INTEGER NOT NULL,
	path TEXT NOT NULL,
	run_id INTEGER,
	file_id INTEGER NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT pk_mlflow_file PRIMARY KEY (project_id, path),
	CONSTRAINT fk_mlflow_file_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_mlflow_file_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_mlflow_file_file_id FOREIGN KEY(file_id) REFERENCES stored_file (id)
);

CREATE INDEX ix_mlflow_file_run_id ON mlflow_file (run_id);

CREATE INDEX ix_mlflow_file_file_id ON mlflow_file (file_id);

CREATE TABLE automation (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	enabled BOOLEAN NOT NULL,
	event TEXT NOT NULL,
	definition TEXT NOT NULL,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	problem TEXT,
	CONSTRAINT fk_automation_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_automation_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT uq_automation_team_id_name UNIQUE (team_id, name)
);

CREATE INDEX ix_automation_event_team_id ON automation (event, team_id);

CREATE TABLE raised_event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	"key" TEXT NOT NULL,
	run_id INTEGER,
	automation_id INTEGER,
	time_ms BIGINT NOT NULL,
	data TEXT NOT NULL,
	CONSTRAINT fk_raised_event_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_raised_event_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT fk_raised_event_automation_id FOREIGN KEY(automation_id) REFERENCES automation (id) ON DELETE CASCADE,
	CONSTRAINT uq_raised_event_key UNIQUE ("key")
);

CREATE INDEX ix_raised_event_team_id ON raised_event (team_id);

CREATE INDEX ix_raised_event_run_id ON raised_event (run_id);

CREATE INDEX ix_raised_event_automation_id ON raised_event (automation_id);

CREATE TABLE automation_firing (
	automation_id INTEGER NOT NULL,
	subject TEXT NOT NULL,
	fired_ms BIGINT NOT NULL,
	CONSTRAINT pk_automation_firing PRIMARY KEY (automation_id, subject),
	CONSTRAINT fk_automation_firing_automation_id FOREIGN KEY(automation_id) REFERENCES automation (id) ON DELETE CASCADE
);

CREATE INDEX ix_automation_firing_fired_ms ON automation_firing (fired_ms);

CREATE TABLE notification (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	dedupe_key TEXT NOT NULL,
	kind TEXT NOT NULL,
	target TEXT NOT NULL,
	subject TEXT NOT NULL,
	text TEXT NOT NULL,
	payload TEXT NOT NULL,
	team_id INTEGER,
	automation_id INTEGER,
	created_ms BIGINT NOT NULL,
	next_ms BIGINT NOT NULL,
	give_up_ms BIGINT NOT NULL,
	tries INTEGER NOT NULL,
	state TEXT NOT NULL,
	status INTEGER,
	answer TEXT,
	error TEXT,
	ended_ms BIGINT,
	CONSTRAINT fk_notification_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_notification_automation_id FOREIGN KEY(automation_id) REFERENCES automation (id) ON DELETE SET NULL,
	CONSTRAINT uq_notification_dedupe_key UNIQUE (dedupe_key)
);

CREATE INDEX ix_notification_state_target_subject_id ON notification (state, target, subject, id);

CREATE INDEX ix_notification_team_id_ended_ms ON notification (team_id, ended_ms);

CREATE INDEX ix_notification_automation_id_id ON notification (automation_id, id);

CREATE INDEX ix_notification_ended_ms ON notification (ended_ms);

CREATE TABLE user_slack (
	user_id INTEGER NOT NULL,
	sealed BLOB NOT NULL,
	shown TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	disabled_ms BIGINT,
	CONSTRAINT pk_user_slack PRIMARY KEY (user_id),
	CONSTRAINT fk_user_slack_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE apprise_destination (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	team_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	sealed BLOB NOT NULL,
	shown TEXT NOT NULL,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	CONSTRAINT fk_apprise_destination_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_apprise_destination_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT uq_apprise_destination_team_id_name UNIQUE (team_id, name)
);

CREATE TABLE usage_dirty (
	lane_id INTEGER NOT NULL,
	day TEXT NOT NULL,
	run_id INTEGER NOT NULL,
	from_ms BIGINT NOT NULL,
	marked_ms BIGINT NOT NULL,
	CONSTRAINT pk_usage_dirty PRIMARY KEY (lane_id, day)
)
 WITHOUT ROWID;

CREATE TABLE usage_run_day (
	run_id INTEGER NOT NULL,
	day TEXT NOT NULL,
	entity_id INTEGER,
	project_id INTEGER NOT NULL,
	author_id INTEGER,
	service_account_id INTEGER,
	job_type TEXT NOT NULL,
	state TEXT NOT NULL,
	tracked_ms BIGINT NOT NULL,
	host_ms BIGINT NOT NULL,
	final BOOLEAN NOT NULL,
	CONSTRAINT pk_usage_run_day PRIMARY KEY (run_id, day)
)
 WITHOUT ROWID;

CREATE INDEX ix_usage_run_day_day ON usage_run_day (day);

CREATE INDEX ix_usage_run_day_state ON usage_run_day (state);

CREATE TABLE usage_host_run_day (
	run_id INTEGER NOT NULL,
	day TEXT NOT NULL,
	host TEXT NOT NULL,
	covered TEXT NOT NULL,
	covered_ms BIGINT NOT NULL,
	measured_mj BIGINT NOT NULL,
	unknown_ms BIGINT NOT NULL, cpu_ms BIGINT, shared_cpu_ms BIGINT, shared_mj BIGINT,
	CONSTRAINT pk_usage_host_run_day PRIMARY KEY (run_id, day, host)
)
 WITHOUT ROWID;

CREATE INDEX ix_usage_host_run_day_host ON usage_host_run_day (host, day);

CREATE TABLE usage_device_run_day (
	run_id INTEGER NOT NULL,
	day TEXT NOT NULL,
	host TEXT NOT NULL,
	device_id INTEGER NOT NULL,
	model TEXT NOT NULL,
	used BOOLEAN,
	share_ms BIGINT NOT NULL,
	busy_ms BIGINT NOT NULL,
	idle_ms BIGINT NOT NULL,
	measured_mj BIGINT NOT NULL,
	estimated_mj BIGINT NOT NULL,
	unknown_ms BIGINT NOT NULL, hung_ms BIGINT,
	CONSTRAINT pk_usage_device_run_day PRIMARY KEY (run_id, day, host, device_id)
)
 WITHOUT ROWID;

CREATE INDEX ix_usage_device_run_day_day ON usage_device_run_day (day);

CREATE TABLE usage_ingest_day (
	run_id INTEGER NOT NULL,
	day TEXT NOT NULL,
	bytes BIGINT NOT NULL,
	points BIGINT NOT NULL,
	CONSTRAINT pk_usage_ingest_day PRIMARY KEY (run_id, day)
)
 WITHOUT ROWID;

CREATE INDEX ix_usage_ingest_day_day ON usage_ingest_day (day);

CREATE TABLE storage_day (
	day TEXT NOT NULL,
	project_id INTEGER NOT NULL,
	kind TEXT NOT NULL,
	entity_id INTEGER,
	bytes BIGINT NOT NULL,
	CONSTRAINT pk_storage_day PRIMARY KEY (day, project_id, kind)
)
 WITHOUT ROWID;

CREATE TABLE usage_name (
	kind TEXT NOT NULL,
	id INTEGER NOT NULL,
	name TEXT NOT NULL,
	CONSTRAINT pk_usage_name PRIMARY KEY (kind, id)
)
 WITHOUT ROWID;

CREATE TABLE rate (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	category TEXT NOT NULL,
	device_glob TEXT NOT NULL,
	price_micro BIGINT NOT NULL,
	valid_from TEXT NOT NULL,
	valid_to TEXT,
	note TEXT NOT NULL,
	created_by TEXT NOT NULL
);

CREATE TABLE cost_centre (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	code TEXT NOT NULL,
	name TEXT NOT NULL,
	address TEXT NOT NULL,
	contact TEXT NOT NULL,
	purchase_order TEXT NOT NULL,
	CONSTRAINT uq_cost_centre_code UNIQUE (code)
);

CREATE TABLE cost_centre_assignment (
	kind TEXT NOT NULL,
	id INTEGER NOT NULL,
	valid_from TEXT NOT NULL,
	cost_centre_id INTEGER,
	CONSTRAINT pk_cost_centre_assignment PRIMARY KEY (kind, id, valid_from),
	CONSTRAINT fk_cost_centre_assignment_cost_centre_id FOREIGN KEY(cost_centre_id) REFERENCES cost_centre (id)
)
 WITHOUT ROWID;

CREATE TABLE "plan" (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	name TEXT NOT NULL,
	description TEXT NOT NULL,
	CONSTRAINT uq_plan_name UNIQUE (name)
);

CREATE TABLE plan_limit (
	plan_id INTEGER NOT NULL,
	category TEXT NOT NULL,
	included DOUBLE NOT NULL,
	limit_units DOUBLE,
	refuse_new_runs BOOLEAN NOT NULL,
	CONSTRAINT pk_plan_limit PRIMARY KEY (plan_id, category),
	CONSTRAINT fk_plan_limit_plan_id FOREIGN KEY(plan_id) REFERENCES "plan" (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE entity_plan (
	entity_id INTEGER NOT NULL,
	valid_from TEXT NOT NULL,
	plan_id INTEGER NOT NULL,
	CONSTRAINT pk_entity_plan PRIMARY KEY (entity_id, valid_from),
	CONSTRAINT fk_entity_plan_plan_id FOREIGN KEY(plan_id) REFERENCES "plan" (id)
)
 WITHOUT ROWID;

CREATE TABLE usage_alert (
	period TEXT NOT NULL,
	entity_id INTEGER NOT NULL,
	category TEXT NOT NULL,
	kind TEXT NOT NULL,
	threshold INTEGER NOT NULL,
	value DOUBLE NOT NULL,
	limit_then DOUBLE,
	sent_ms BIGINT,
	CONSTRAINT pk_usage_alert PRIMARY KEY (period, entity_id, category, kind, threshold)
)
 WITHOUT ROWID;

CREATE TABLE billing_document (
	name TEXT NOT NULL,
	body TEXT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT pk_billing_document PRIMARY KEY (name)
);

CREATE TABLE statement (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	number TEXT,
	period TEXT NOT NULL,
	scope_kind TEXT NOT NULL,
	scope_id INTEGER NOT NULL,
	scope_name TEXT NOT NULL,
	state TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	issued_ms BIGINT,
	issued_by TEXT,
	currency TEXT NOT NULL,
	total_micro BIGINT NOT NULL,
	settlement TEXT NOT NULL,
	reason TEXT NOT NULL,
	replaces_id INTEGER,
	pdf BLOB,
	digest TEXT,
	CONSTRAINT fk_statement_replaces_id FOREIGN KEY(replaces_id) REFERENCES statement (id),
	CONSTRAINT uq_statement_number UNIQUE (number)
);

CREATE INDEX ix_statement_period ON statement (period);

CREATE TABLE statement_line (
	statement_id INTEGER NOT NULL,
	position INTEGER NOT NULL,
	text TEXT NOT NULL,
	project TEXT NOT NULL,
	category TEXT NOT NULL,
	model TEXT NOT NULL,
	quantity DOUBLE NOT NULL,
	unit TEXT NOT NULL,
	included DOUBLE NOT NULL,
	price_micro BIGINT NOT NULL,
	amount_micro BIGINT NOT NULL,
	CONSTRAINT pk_statement_line PRIMARY KEY (statement_id, position),
	CONSTRAINT fk_statement_line_statement_id FOREIGN KEY(statement_id) REFERENCES statement (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE TABLE statement_counter (
	year INTEGER NOT NULL,
	taken INTEGER NOT NULL,
	CONSTRAINT pk_statement_counter PRIMARY KEY (year)
);

CREATE TABLE sweep (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	project_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	display_name TEXT,
	description TEXT,
	source TEXT NOT NULL,
	configuration TEXT NOT NULL,
	state TEXT NOT NULL,
	seed BIGINT NOT NULL,
	places INTEGER NOT NULL,
	author_id INTEGER,
	service_account_id INTEGER,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT uq_sweep_project_id_name UNIQUE (project_id, name),
	CONSTRAINT fk_sweep_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_sweep_author_id FOREIGN KEY(author_id) REFERENCES user_account (id),
	CONSTRAINT fk_sweep_service_account_id FOREIGN KEY(service_account_id) REFERENCES service_account (id) ON DELETE SET NULL,
	CONSTRAINT ck_sweep_state CHECK (state IN ('pending', 'running', 'paused', 'finished', 'canceled'))
);

CREATE TABLE sweep_agent (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	sweep_id INTEGER NOT NULL,
	host TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	heard_ms BIGINT NOT NULL,
	CONSTRAINT fk_sweep_agent_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id) ON DELETE CASCADE
);

CREATE INDEX ix_sweep_agent_sweep_id_heard_ms ON sweep_agent (sweep_id, heard_ms);

CREATE TABLE sweep_run (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	sweep_id INTEGER NOT NULL,
	run_name TEXT NOT NULL,
	run_id INTEGER,
	place INTEGER,
	agent_id INTEGER,
	tries INTEGER NOT NULL,
	state TEXT NOT NULL,
	parameters TEXT,
	value DOUBLE,
	marks TEXT NOT NULL,
	created_ms BIGINT NOT NULL,
	CONSTRAINT uq_sweep_run_sweep_id_run_name UNIQUE (sweep_id, run_name),
	CONSTRAINT uq_sweep_run_sweep_id_place UNIQUE (sweep_id, place),
	CONSTRAINT fk_sweep_run_sweep_id FOREIGN KEY(sweep_id) REFERENCES sweep (id) ON DELETE CASCADE,
	CONSTRAINT fk_sweep_run_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE SET NULL,
	CONSTRAINT fk_sweep_run_agent_id FOREIGN KEY(agent_id) REFERENCES sweep_agent (id) ON DELETE SET NULL,
	CONSTRAINT ck_sweep_run_state CHECK (state IN ('assigned', 'begun', 'stopping', 'ended'))
);

CREATE INDEX ix_sweep_run_run_id ON sweep_run (run_id);

CREATE INDEX ix_sweep_run_agent_id ON sweep_run (agent_id);

CREATE INDEX ix_sweep_run_sweep_id_state ON sweep_run (sweep_id, state);

CREATE TABLE run_alert_event (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	run_id INTEGER NOT NULL,
	life BIGINT NOT NULL,
	event TEXT NOT NULL,
	"key" TEXT NOT NULL,
	level TEXT NOT NULL,
	time_ms BIGINT NOT NULL,
	data TEXT NOT NULL,
	state TEXT NOT NULL,
	CONSTRAINT fk_run_alert_event_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE,
	CONSTRAINT uq_run_alert_event_run_id UNIQUE (run_id, life, event, "key")
);

CREATE INDEX ix_run_alert_event_state ON run_alert_event (state, id);

CREATE INDEX ix_run_alert_event_event ON run_alert_event (event, time_ms);

CREATE INDEX ix_run_alert_event_time_ms ON run_alert_event (time_ms);

CREATE TABLE waiting_alert (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL,
	channel TEXT NOT NULL,
	event_id BIGINT NOT NULL,
	due_ms BIGINT NOT NULL,
	subject TEXT NOT NULL,
	body TEXT NOT NULL,
	CONSTRAINT fk_waiting_alert_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT uq_waiting_alert_user_id UNIQUE (user_id, channel, event_id)
);

CREATE INDEX ix_waiting_alert_due_ms ON waiting_alert (due_ms);

CREATE TABLE user_alerts (
	user_id INTEGER NOT NULL,
	data TEXT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT pk_user_alerts PRIMARY KEY (user_id),
	CONSTRAINT fk_user_alerts_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE
);

CREATE TABLE team_alerts (
	team_id INTEGER NOT NULL,
	data TEXT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT pk_team_alerts PRIMARY KEY (team_id),
	CONSTRAINT fk_team_alerts_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE
);

CREATE TABLE alert_exception (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	user_id INTEGER NOT NULL,
	team_id INTEGER,
	project_id INTEGER,
	run_id INTEGER,
	mode TEXT NOT NULL,
	CONSTRAINT fk_alert_exception_user_id FOREIGN KEY(user_id) REFERENCES user_account (id) ON DELETE CASCADE,
	CONSTRAINT fk_alert_exception_team_id FOREIGN KEY(team_id) REFERENCES team (entity_id) ON DELETE CASCADE,
	CONSTRAINT fk_alert_exception_project_id FOREIGN KEY(project_id) REFERENCES project (id) ON DELETE CASCADE,
	CONSTRAINT fk_alert_exception_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE UNIQUE INDEX uq_alert_exception_user_id ON alert_exception (user_id, coalesce(team_id, 0), coalesce(project_id, 0), coalesce(run_id, 0));

CREATE INDEX ix_alert_exception_team_id ON alert_exception (team_id);

CREATE INDEX ix_alert_exception_project_id ON alert_exception (project_id);

CREATE INDEX ix_alert_exception_run_id ON alert_exception (run_id);

CREATE TABLE alert_rule (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	entity_id INTEGER NOT NULL,
	name TEXT NOT NULL,
	definition TEXT NOT NULL,
	enabled BOOLEAN NOT NULL,
	muted_until_ms BIGINT,
	created_by INTEGER,
	created_ms BIGINT NOT NULL,
	changed_ms BIGINT NOT NULL,
	CONSTRAINT fk_alert_rule_entity_id FOREIGN KEY(entity_id) REFERENCES entity (id) ON DELETE CASCADE,
	CONSTRAINT fk_alert_rule_created_by FOREIGN KEY(created_by) REFERENCES user_account (id) ON DELETE SET NULL,
	CONSTRAINT uq_alert_rule_entity_id UNIQUE (entity_id, name)
);

CREATE TABLE alert_rule_state (
	rule_id INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	lane_id INTEGER NOT NULL,
	"key" TEXT NOT NULL,
	host TEXT NOT NULL,
	state SMALLINT NOT NULL,
	since_ms BIGINT NOT NULL,
	fired_ms BIGINT,
	CONSTRAINT pk_alert_rule_state PRIMARY KEY (rule_id, run_id, lane_id, "key"),
	CONSTRAINT fk_alert_rule_state_rule_id FOREIGN KEY(rule_id) REFERENCES alert_rule (id) ON DELETE CASCADE,
	CONSTRAINT fk_alert_rule_state_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE INDEX ix_alert_rule_state_run_id ON alert_rule_state (run_id);

CREATE TABLE alert_firing (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	rule_id INTEGER NOT NULL,
	run_id INTEGER NOT NULL,
	lane_id INTEGER NOT NULL,
	"key" TEXT NOT NULL,
	host TEXT NOT NULL,
	severity TEXT NOT NULL,
	value DOUBLE,
	fired_ms BIGINT NOT NULL,
	ended_ms BIGINT,
	told TEXT NOT NULL,
	CONSTRAINT fk_alert_firing_rule_id FOREIGN KEY(rule_id) REFERENCES alert_rule (id) ON DELETE CASCADE,
	CONSTRAINT fk_alert_firing_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE INDEX ix_alert_firing_rule_id ON alert_firing (rule_id, fired_ms);

CREATE INDEX ix_alert_firing_run_id ON alert_firing (run_id, fired_ms);

CREATE INDEX ix_alert_firing_fired_ms ON alert_firing (fired_ms);

CREATE TABLE pending_summary (
	run_id INTEGER NOT NULL,
	server INTEGER NOT NULL,
	CONSTRAINT pk_pending_summary PRIMARY KEY (run_id, server),
	CONSTRAINT fk_pending_summary_run_id FOREIGN KEY(run_id) REFERENCES run (id) ON DELETE CASCADE
);

CREATE TABLE usage_request_day (
	owner_kind TEXT NOT NULL,
	owner_id INTEGER NOT NULL,
	day TEXT NOT NULL,
	requests BIGINT NOT NULL,
	CONSTRAINT pk_usage_request_day PRIMARY KEY (owner_kind, owner_id, day)
)
 WITHOUT ROWID;

CREATE INDEX ix_usage_request_day_day ON usage_request_day (day);

CREATE TABLE logged_model_metric (
	model_id INTEGER NOT NULL,
	run_uid TEXT NOT NULL,
	"key" TEXT NOT NULL,
	dataset_name TEXT NOT NULL,
	dataset_digest TEXT NOT NULL,
	value DOUBLE,
	timestamp BIGINT NOT NULL,
	step BIGINT NOT NULL,
	CONSTRAINT pk_logged_model_metric PRIMARY KEY (model_id, run_uid, "key", dataset_name, dataset_digest),
	CONSTRAINT fk_logged_model_metric_model_id_logged_model FOREIGN KEY(model_id) REFERENCES logged_model (id) ON DELETE CASCADE
)
 WITHOUT ROWID;

INSERT INTO alembic_version VALUES ('0041');
