//! Memberships, grants and what statements need.

use rights::{
    Acl, By, Change, Granting, Need, Needs, ObjectKind, Privileges, Rights, RoleId, RoleName,
    RoleOption, Target,
};

const A: RoleId = RoleId(100);
const B: RoleId = RoleId(101);
const C: RoleId = RoleId(102);

/// Roles a, b and c; `a` is a member of `b`, and `b` of `c`.
fn chain() -> Rights {
    let mut rights = Rights::default();
    let by = By::default();
    for (name, id) in [("a", A), ("b", B), ("c", C)] {
        let made = rights.create_role((name, &[RoleOption::Login(true)]), &by, id);
        made.expect("a new name");
    }
    join(&mut rights, "b", "a").expect("no circle");
    join(&mut rights, "c", "b").expect("no circle");
    rights
}

fn join(rights: &mut Rights, of: &str, member: &str) -> Result<(), String> {
    let change = Change::Members {
        is_grant: true,
        of: vec![of.into()],
        roles: vec![RoleName::Named(member.into())],
        admin: false,
    };
    let done = rights.change_roles(&change, &By::default());
    done.map(drop)
        .map_err(|error| error.fields().message.clone())
}

fn granting(grantor: RoleId, grantee: RoleId, option: bool) -> Granting {
    Granting {
        owner: A,
        grantor,
        grantee,
        privileges: Privileges::SELECT,
        option,
        cascade: false,
    }
}

#[test]
fn memberships_have_no_circles_and_are_followed() {
    let mut rights = chain();
    assert_eq!(
        join(&mut rights, "a", "c"),
        Err("role \"a\" is a member of role \"c\"".into())
    );
    assert!(rights.is_member(A, C, RoleId::OWNER));
    assert!(!rights.is_member(C, A, RoleId::OWNER));
    assert!(rights.groups(A, A).contains(&RoleId::DATABASE_OWNER));
    rights.remove_role(B);
    assert!(!rights.is_member(A, C, RoleId::OWNER));
}

#[test]
fn a_name_that_is_no_role_is_not_altered() {
    let mut rights = Rights::default();
    let by = By {
        alias: "root".into(),
        ..By::default()
    };
    for role in [RoleName::Named("root".into()), RoleName::Current] {
        let options = vec![RoleOption::Password(None)];
        let change = Change::AlterRole { role, options };
        assert!(rights.change_roles(&change, &by).is_err());
    }
    assert_eq!(rights, Rights::default());
}

#[test]
fn what_was_granted_on_goes_with_the_option() {
    let mut acl = ObjectKind::Table.first_acl(A);
    acl.grant(granting(A, B, true)).expect("by the owner");
    acl.grant(granting(B, C, true)).expect("with the option");
    let back = acl.clone().grant(granting(C, B, true));
    assert!(back.is_err(), "options do not come from their own grantee");
    let refused = acl.clone().revoke(granting(A, B, false));
    assert_eq!(
        refused.map_err(|e| e.fields().message.clone()),
        Err("dependent privileges exist".into())
    );
    let cascade = Granting {
        cascade: true,
        ..granting(A, B, false)
    };
    acl.revoke(cascade).expect("with what depends on it");
    assert_eq!(acl, ObjectKind::Table.first_acl(A));
}

#[test]
fn texts_are_those_of_postgresql() {
    let mut acl = ObjectKind::Table.first_acl(A);
    acl.grant(granting(A, B, true)).expect("by the owner");
    acl.grant(granting(A, RoleId::PUBLIC, false))
        .expect("by the owner");
    let texts = acl.texts(&|role| format!("r{}", role.0));
    assert_eq!(texts, ["r100=arwdDxt/r100", "r101=r*/r100", "=r/r100"]);
}

#[test]
fn columns_stand_for_their_table_where_all_of_them_are_granted() {
    let mut rights = chain();
    let target = Target::Relation(7);
    let object = rights.object_mut(&target);
    object.owner = C;
    let mut column = Acl::default();
    let one = Granting {
        owner: C,
        grantor: C,
        grantee: B,
        ..granting(C, B, false)
    };
    column.grant(one).expect("by the owner");
    object.columns.insert(3, column);
    let mut needs = Needs::default();
    let need = Need {
        by: None,
        relation: 7,
        kind: ObjectKind::Table,
        name: "t".into(),
        wanted: Privileges::SELECT,
        columns: vec![3],
    };
    needs.add(need);
    let mut alone = rights.clone();
    alone.remove_role(C);
    assert!(alone.check(&needs, A, RoleId::OWNER).is_ok(), "by way of b");
    needs.relations[0].columns.push(4);
    let refused = alone.check(&needs, A, RoleId::OWNER);
    assert_eq!(
        refused.map_err(|error| error.fields().message.clone()),
        Err("permission denied for table t".into())
    );
    assert!(
        rights.check(&needs, A, RoleId::OWNER).is_ok(),
        "a is one of the owners"
    );
}
